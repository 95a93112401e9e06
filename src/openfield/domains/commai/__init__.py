"""The CommAI domain: a teacher and a learner exchange bytes, and tasks follow each other unannounced."""
