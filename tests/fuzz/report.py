"""What a run of the fuzz found: counts as data, a table to read, a file of reproducers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from fuzz.trial import FATAL, OPEN, PAPER, Record

# The share of problems that may end without the gap, by the spread of their costs.
ALLOWED = {"ordinary": 0.002, "wide": 0.01}
_COLUMNS = ("problems", "solved", *FATAL, OPEN, "refused", "overtime", "warned")


class Report:
    """Counts while a run goes on; failures are written at once, so that none is ever lost."""

    def __init__(self, folder: Path, time_limit: float, decades: float | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.time_limit = folder, time_limit
        self.again = "PYTHONPATH=tests python -m fuzz.run"
        self.again += "" if decades is None else f" --decades {decades:g}"
        self.counts: dict[tuple[str, str], Counter[str]] = {}
        self.warnings: Counter[str] = Counter()
        self.methods: Counter[str] = Counter()
        self.slowest: list[tuple[float, int]] = []
        self.failures = folder / "failures.txt"
        self.failures.write_text("")

    def add(self, record: Record) -> None:
        """Count one problem, and save how to reproduce what went wrong."""
        row = self.counts.setdefault((record.family, spread(record)), Counter())
        row["problems"] += 1
        row.update(record.kinds)
        row["refused"] += record.status == "REFUSED"
        row["warned"] += bool(record.warned)
        late = record.seconds > self.time_limit + max(0.3, 0.1 * self.time_limit)
        row["overtime"] += late
        counted = record.method not in PAPER and record.status != "REFUSED"
        row["solved"] += counted and not record.faults
        row["examined only"] += not counted
        self.methods.update(record.tried)
        self.warnings.update(text[:120] for text in record.warned)
        self.slowest = sorted([*self.slowest, (record.seconds, record.seed)], reverse=True)[:10]
        if record.faults or late:
            self._save(record, late)

    def _save(self, record: Record, late: bool) -> None:
        n, m = record.shape
        reg = f", reg {record.reg:.3g}" if record.reg else ""
        head = f"# {record.family}, {spread(record)} costs, {n}×{m}{reg}, {record.seconds:.1f} s"
        said = [f"#   {kind} | {method} | {text}" for kind, method, text in record.faults]
        said += [f"#   overtime: {record.seconds:.1f} s"] if late else []
        again = f"{self.again} --seed {record.seed}"
        with self.failures.open("a") as file:
            file.write("\n".join([again, head, *said, record.line, "", ""]))

    @property
    def total(self) -> Counter[str]:
        return sum(self.counts.values(), Counter())

    def by_spread(self, name: str) -> Counter[str]:
        rows = (row for (_, kind), row in self.counts.items() if kind == name)
        return sum(rows, Counter())

    def violations(self) -> list[str]:
        """What must hold and does not, as sentences; nothing if the run passes."""
        total = self.total
        said = [f"{total[kind]} problems: {kind}" for kind in FATAL if total[kind]]
        for name, allowed in ALLOWED.items():
            row = self.by_spread(name)
            share = row[OPEN] / max(row["problems"], 1)
            if share > allowed:
                said.append(
                    f"{row[OPEN]} of {row['problems']} problems with {name} costs did not converge "
                    f"({share:.2%}, at most {allowed:.1%})"
                )
        return said

    def write(self, **run: object) -> Path:
        """The whole summary as JSON; ``run`` says how it was made."""
        path = self.folder / "summary.json"
        rows = [
            {"family": family, "costs": name, **{k: row[k] for k in (*_COLUMNS, "examined only")}}
            for (family, name), row in sorted(self.counts.items())
        ]
        summary = {
            **run,
            "total": dict(self.total),
            "shares": {
                name: {k: row[k] / max(row["problems"], 1) for k in _COLUMNS[1:]}
                for name, row in ((name, self.by_spread(name)) for name in ALLOWED)
            },
            "rows": rows,
            "methods": dict(self.methods),
            "warnings": dict(self.warnings.most_common()),
            "slowest": [{"seed": seed, "seconds": seconds} for seconds, seed in self.slowest],
            "violations": self.violations(),
        }
        path.write_text(json.dumps(summary, indent=1) + "\n")
        return path

    def table(self) -> str:
        """The counts by family and by the spread of costs, as text."""
        lines = [["structure", "costs", *_COLUMNS]]
        for (family, name), row in sorted(self.counts.items()):
            lines.append([family, name, *(str(row[k]) for k in _COLUMNS)])
        for name in ALLOWED:
            row = self.by_spread(name)
            lines.append(["all", name, *(str(row[k]) for k in _COLUMNS)])
            problems = max(row["problems"], 1)
            lines.append(["", "share", "", *(f"{row[k] / problems:.2%}" for k in _COLUMNS[1:])])
        return _align(lines)


def spread(record: Record) -> str:
    return "wide" if record.wide else "ordinary"


def _align(lines: Iterable[list[str]]) -> str:
    rows = [list(line) for line in lines]
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return "\n".join(
        "  ".join(x.ljust(w) if k < 2 else x.rjust(w) for k, (x, w) in enumerate(zip(row, widths)))
        for row in rows
    )
