"""Why two sentences are near or far: which word goes where, and which phrases pay for it.

Notation. P the plan, M the cost, f(P) = Σ_ij C_ij P_ij + Σ_kl f_kl(P) the value, with C = M for a
fixed charge or plain WMD and C = 0 for a concave g; f_kl the share of a pair of phrases.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from structot._extras import optional
from structot._typing import Array
from structot.result import Result
from structot.text.sentence import Sentence
from structot.text.sentence_cost import SentenceCost

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_SEEN = 0.02  # of the largest mass: less is not drawn or listed


@dataclass(frozen=True)
class PhrasePair:
    """Two phrases that exchange words: how much mass, and their share of the value.

    Examples
    --------
    >>> PhrasePair(("two", "dogs"), ("a", "cat"), 0.5, 0.2).mass
    0.5
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    mass: float
    contribution: float


@dataclass(frozen=True)
class PhraseFate:
    """How well a phrase kept together: 1 if its words moved in step, 0 if each went its own way.

    With weights a of its words it pays at least price · max a, and at most price · Σ a; ``kept`` is
    the share of the difference that it saved. ``side`` is "source" or "target".

    Examples
    --------
    >>> PhraseFate(("two", "dogs"), "source", kept=1.0, pays=0.1).kept
    1.0
    """

    words: tuple[str, ...]
    side: str
    kept: float
    pays: float


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """value = Σ contributions: where the words of one sentence go in the other, and at what price.

    Attributes
    ----------
    source, target
        The words that were compared.
    plan
        P, shape (source words, target words): the share of the whole that goes from word to word.
    cost
        M, the distances between the vectors.
    contributions
        Shape of the plan, of sum ``result.value``: P M, and what phrases cost, divided among their
        pairs of words in proportion to the mass moved (for a concave g: to P M).
    phrases
        The pairs of phrases that exchange words, the most expensive first.
    fates
        Of every phrase of two words or more, in the order in which they are read (see
        ``active_voice`` of `WordMover`), whether it was kept; empty unless order is kept.
    distance
        What `WordMover.distance` returns: the value, debiased if so chosen.
    result
        The answer of `structot.solve`: value, lower bound, gap, potentials, worst cost, in plain
        units of the cost.

    Examples
    --------
    >>> from structot.text import WordMover
    >>> mover = WordMover((["cat", "dog"], [[0.0, 0.0], [1.0, 0.0]]))
    >>> found = mover.explain("cat dog", "dog cat")
    >>> found.source, found.plan.shape
    (('cat', 'dog'), (2, 2))
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    plan: Array
    cost: Array
    contributions: Array
    phrases: tuple[PhrasePair, ...]
    fates: tuple[PhraseFate, ...]
    distance: float
    result: Result

    def moves(self) -> list[tuple[str, str, float, float]]:
        """(source word, target word, mass, contribution), the heaviest first."""
        listed = []
        for i, j in zip(*np.nonzero(self.plan > _SEEN * self.plan.max())):
            mass, share = float(self.plan[i, j]), float(self.contributions[i, j])
            listed.append((self.source[i], self.target[j], mass, share))
        return sorted(listed, key=lambda move: -move[2])

    def kept(self, side: str = "source") -> list[PhraseFate]:
        """The phrases of one side of which more than a half was kept."""
        return [fate for fate in self.fates if fate.side == side and fate.kept > 0.5]

    def broken(self, side: str = "source") -> list[PhraseFate]:
        """The phrases of one side of which no more than a half was kept."""
        return [fate for fate in self.fates if fate.side == side and fate.kept <= 0.5]

    def __repr__(self) -> str:
        lines = [f"Explanation: distance {self.distance:.6g}, {self._certificate()}"]
        lines += [
            f"  {s} -> {t}  mass {mass:.3f}, pays {share:.4g}" for s, t, mass, share in self.moves()
        ]
        return "\n".join(lines + self._told())

    def _told(self) -> list[str]:
        """Which phrases were kept and which were broken, a line each."""
        lines = []
        for name, listed in (("kept", self.kept), ("broken", self.broken)):
            for side in ("source", "target"):
                told = ", ".join(f"{' '.join(f.words)} ({f.kept:.0%})" for f in listed(side))
                if told:
                    lines.append(f"  {name} of the {side}: {told}")
        return lines

    def _certificate(self) -> str:
        result = self.result
        return (
            f"value {result.value:.6g}, proved to be at least {result.lower_bound:.6g} "
            f"(gap {max(result.gap, 0.0):.1e})"
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Both sentences as rows of words, joined by lines: width by mass, colour by distance.

        Examples
        --------
        >>> from structot.text import WordMover
        >>> mover = WordMover({"a": [0.0], "b": [1.0], "c": [5.0]})
        >>> ax = mover.explain("a b c", "a c").plot()
        >>> len(ax.texts)
        5
        """
        if ax is None:
            plt = optional("matplotlib.pyplot", "a picture of an explanation")
            width = max(4.0, 0.8 * max(len(self.source), len(self.target)))
            ax = plt.subplots(figsize=(width, 2.6), layout="constrained")[1]
        draw_alignment(self.source, self.target, self.plan, self.cost, ax)
        ax.set_title(f"distance {self.distance:.4g}", fontsize="medium")
        return ax

    def to_html(self, n_phrases: int = 8) -> str:
        """A table of the plan, shaded by mass, and one of the phrases that cost most."""
        largest = float(self.plan.max())
        head = "".join(f"<th>{html.escape(word)}</th>" for word in self.target)
        body = []
        for i, word in enumerate(self.source):
            cells = "".join(self._cell(i, j, largest) for j in range(len(self.target)))
            body.append(f"<tr><th>{html.escape(word)}</th>{cells}</tr>")
        parts = [
            f"<p>distance {self.distance:.6g}; {html.escape(self._certificate())}</p>",
            f"<table><tr><th></th>{head}</tr>{''.join(body)}</table>",
            *(f"<p>{html.escape(line.strip())}</p>" for line in self._told()),
        ]
        if self.phrases:
            rows = "".join(
                f"<tr><td>{html.escape(' '.join(p.source))}</td>"
                f"<td>{html.escape(' '.join(p.target))}</td>"
                f"<td>{p.mass:.3f}</td><td>{p.contribution:.4g}</td></tr>"
                for p in self.phrases[:n_phrases]
            )
            names = "".join(f"<th>{name}</th>" for name in ("phrase", "phrase", "mass", "pays"))
            parts.append(f"<table><tr>{names}</tr>{rows}</table>")
        return "\n".join(parts)

    def _repr_html_(self) -> str:
        return self.to_html()

    def _cell(self, i: int, j: int, largest: float) -> str:
        mass = float(self.plan[i, j])
        tip = f"distance {self.cost[i, j]:.4g}, pays {self.contributions[i, j]:.4g}"
        shade = f"background: rgba(0, 114, 178, {0.7 * mass / largest:.2f})"
        text = f"{mass:.3f}" if mass > _SEEN * largest else ""
        return f'<td style="{shade}" title="{tip}">{text}</td>'


def draw_alignment(
    source: Sequence[str], target: Sequence[str], plan: Array, cost: Array, ax: Axes
) -> None:
    """Two rows of words joined by lines: width by mass, colour by distance."""
    from matplotlib.collections import LineCollection

    places = [(np.arange(len(words)) + 0.5) / len(words) for words in (source, target)]
    rows, columns = np.nonzero(plan > _SEEN * plan.max())
    strength = plan[rows, columns] / plan.max()
    segments = [[(x, 0.9), (y, 0.1)] for x, y in zip(places[0][rows], places[1][columns])]
    lines = LineCollection(segments, linewidths=0.5 + 3.5 * strength, cmap="viridis_r")
    lines.set_array(cost[rows, columns])
    lines.set_clim(0.0, float(cost.max()) or 1.0)
    ax.add_collection(lines)
    for words, at, y, align in (
        (source, places[0], 0.94, "bottom"),
        (target, places[1], 0.06, "top"),
    ):
        for word, x in zip(words, at):
            ax.text(x, y, word, ha="center", va=align, parse_math=False)
    ax.set(xlim=(0, 1), ylim=(-0.12, 1.12), xticks=[], yticks=[])
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.figure.colorbar(lines, ax=ax, label="distance of the words", shrink=0.8)


def explain(mover: SentenceCost, s: Any, t: Any, tol: float = 1e-4) -> Explanation:
    """Solve one pair with `structot.solve` and divide its value among words and phrases.

    Examples
    --------
    >>> from structot.text import WordMover
    >>> mover = WordMover({"a": [0.0], "b": [1.0], "c": [5.0]}, debias=False)
    >>> why = explain(mover, "a b", "b c")
    >>> bool(abs(why.contributions.sum() - why.result.value) < 1e-12)
    True
    """
    source, target = mover.prepare(s), mover.prepare(t)
    mover.report_unknown()
    if source is None or target is None:
        raise ValueError(f"there is nothing to explain: {s!r} or {t!r} has no known word.")
    result, M = mover.solve(source, target, tol), mover.cost(source, target)
    P = result.plan
    phrases: list[PhrasePair] = []
    fates: list[PhraseFate] = []
    if mover.is_plain:
        shares = mover.model.unit * P * M
    else:
        shares, phrases = _divide(mover, source, target, P, M)
    if mover.keeps_order:
        fates = _fates(mover, source, target, P, "source")
        fates += _fates(mover, target, source, P.T, "target")
    distance = result.value - 0.5 * float(mover.self_terms([source, target], tol)[0].sum())
    if mover.debias and (source.key == target.key or mover.keeps_order):
        distance = 0.0 if source.key == target.key else max(distance, 0.0)
    return Explanation(
        source.words,
        target.words,
        P,
        M,
        shares,
        tuple(sorted(phrases, key=lambda pair: -pair.contribution)),
        tuple(fates),
        distance,
        result,
    )


def _divide(
    mover: SentenceCost, s: Sentence, t: Sentence, P: Array, M: Array
) -> tuple[Array, list[PhrasePair]]:
    """What every pair of words pays, and every pair of phrases."""
    blocks = mover.blocks(s, t)
    price = mover.price(blocks, s, t)
    count = np.zeros(P.shape)
    for block in blocks:
        count[tuple(block.T)] += 1.0
    shares = P * M if mover.concave is None else np.zeros(P.shape)
    found = []
    for block in blocks:
        where = tuple(block.T)
        mass = P[where]
        if not mass.any():
            continue
        pays, basis = price * float(mass.max()), mass
        if mover.concave is not None:
            w = M[where] / count[where] / mover.unit
            pays, basis = mover.unit * _extension(mover.concave, w, mass), mass * w
        if pays > 0:
            shares[where] += pays * basis / basis.sum()
        rows, columns = (dict.fromkeys(side.tolist()) for side in where)
        names = (tuple(s.words[i] for i in rows), tuple(t.words[j] for j in columns))
        found.append(PhrasePair(*names, float(mass.sum()), pays))
    return shares, found


def _fates(mover: SentenceCost, s: Sentence, t: Sentence, P: Array, side: str) -> list[PhraseFate]:
    """What became of the phrases of s, the rows of P."""
    found = []
    for phrase in s.phrases:
        if phrase.members.size < 2:
            continue
        a, pays = s.weights[phrase.members], 0.0
        alone = P[phrase.members].copy()  # pairs that share no block with others of the phrase
        for other in t.phrases:
            r, c = np.nonzero(phrase.roles[:, None] == other.roles)
            if r.size:
                pays += float(P[phrase.members[r], other.members[c]].max())
                alone[r, other.members[c]] = 0.0
        pays += float(alone.sum())
        kept = (a.sum() - pays) / (a.sum() - a.max())
        words = tuple(s.words[i] for i in phrase.members)
        price = mover.model.price / mover.ngram
        found.append(PhraseFate(words, side, float(np.clip(kept, 0.0, 1.0)), price * pays))
    return found


def _extension(g: Any, w: Array, x: Array) -> float:
    """Σ x_(k) (g(W_k) - g(W_k-1)) along x sorted downwards."""
    order = np.argsort(-x, kind="stable")
    total = np.cumsum(w[order])
    return float(x[order] @ np.diff(g(total), prepend=0.0))
