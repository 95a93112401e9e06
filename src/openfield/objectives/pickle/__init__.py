"""Pickle."""
