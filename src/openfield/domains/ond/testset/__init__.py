"""Testset."""
