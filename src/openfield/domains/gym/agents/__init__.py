"""Environments of Gymnasium in words, for language models and people: `gym_writer`."""
