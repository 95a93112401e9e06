"""What an agent did, without asking for its reward: objectives from transition counts."""
