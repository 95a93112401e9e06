"""openfield tells you what your agent does when its world changes."""

__version__ = "0.1.0"
