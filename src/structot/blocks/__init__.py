"""Concave-of-sum functions on disjoint blocks of pairs: the engine of the fast methods."""
