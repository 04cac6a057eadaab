"""What a plan must, or should, do to its marginals: hard, KL, TV, partial; one object per kind."""

from structot.marginals.exact import relaxed_emd
from structot.marginals.pair import Marginals
from structot.marginals.sides import KL, TV, Hard, Partial, Side

__all__ = ["KL", "TV", "Hard", "Marginals", "Partial", "Side", "relaxed_emd"]
