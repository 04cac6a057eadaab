"""Data for structured transport: generators of synthetic problems, loaders of real ones."""

from structot.datasets.synthetic import ClusterProblem, clusters, two_moons

__all__ = ["ClusterProblem", "clusters", "two_moons"]
