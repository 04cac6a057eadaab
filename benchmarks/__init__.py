"""Timed comparison of structot with its peers: ``python -m benchmarks.run``."""
