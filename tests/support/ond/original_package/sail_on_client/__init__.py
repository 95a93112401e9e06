"""A package with the names and interfaces of the original client, for agents that import it; nothing of its code."""
