"""Worlds, agents, programs and records that the tests share."""
