"""Structured optimal transport: plans whose cost depends on which pairs are used together."""
