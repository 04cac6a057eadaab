"""Blocks and cuts below the chords of their concave functions."""
