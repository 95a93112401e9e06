"""Outofcore."""
