"""Proximal point with a semismooth Newton method inside, for one layer of disjoint blocks."""
