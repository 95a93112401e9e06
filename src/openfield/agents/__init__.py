"""Agents that come with openfield, and bridges to programs that are agents already."""
