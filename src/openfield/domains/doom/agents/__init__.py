"""Agents that come with the Doom domains."""
