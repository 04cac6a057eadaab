"""From the options of the command line to a structure: every option has an effect or is refused."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Annotated, Any

import typer

from structot import _checks
from structot import concave as functions

__all__ = ["FAMILIES", "Dials"]

# Family -> (its class, option -> parameter of the class).
FAMILIES: dict[str, tuple[Callable[..., functions.Concave], dict[str, str]]] = {
    "discount": (functions.Discount, {"discount": "d"}),
    "threshold-sqrt": (functions.ThresholdSqrt, {"alpha": "alpha", "scale": "scale"}),
    "truncation": (functions.Truncation, {"alpha": "alpha"}),
    "log": (functions.Log, {"scale": "scale"}),
    "power": (functions.Power, {"exponent": "p"}),
    "piecewise-linear": (functions.PiecewiseLinear, {"breaks": "breaks", "slopes": "slopes"}),
    "sqrt": (functions.Sqrt, {}),
    "linear": (functions.Linear, {}),
}
_PARAMETERS = ("discount", "alpha", "scale", "exponent", "breaks", "slopes")

Family = Annotated[
    str | None,
    typer.Option("--concave", help=f"One of {', '.join(FAMILIES)}; by default what fits."),
]
Units = Annotated[
    str | None,
    typer.Option(
        help="block (default): shares of a block's total cost, with --routes mean: shares of the "
        "mean cost; or cost: units of COST."
    ),
]
Breaks = Annotated[
    str | None, typer.Option(help="Of piecewise-linear: where the slope changes, e.g. 0.1,0.5.")
]
Slopes = Annotated[
    str | None, typer.Option(help="Of piecewise-linear: one more than breaks, e.g. 1,0.5,0.1.")
]
DISCOUNT_HELP = "Of a fully used block, from 0 (plain transport) to 1 (0.75 by default)."
ROUTES_HELP = (
    "Instead of a discount, the plain cost plus a charge for every route between two groups, at "
    "which points keep their partners; from 0 (plain transport), 0.3 is the default of Routes."
)
CHARGE_HELP = (
    "Instead of a discount, the plain cost plus a price for every pair of groups in use, by its "
    "largest entry."
)
ALPHA_HELP = "Threshold of threshold-sqrt and truncation."
SCALE_HELP = "Of log, and of threshold-sqrt beyond its threshold."
EXPONENT_HELP = "Of power."


@dataclass(frozen=True)
class Dials:
    """What was said about the structure; None for an option that was not given."""

    discount: float | None = None
    charge: float | None = None
    routes: float | None = None
    alpha: float | None = None
    scale: float | None = None
    exponent: float | None = None
    breaks: str | None = None
    slopes: str | None = None
    concave: str | None = None
    units: str | None = None

    def structure(self, rows: list[Any] | None, cols: list[Any] | None) -> Any:
        """The structure of these groups; None for plain transport, where there are no groups."""
        from structot.structures import Coverage, Groups, Modular, Routes

        if rows is None and cols is None:
            for option in self._given():
                raise ValueError(
                    f"--{option} has no effect without groups; pass --source-groups or "
                    "--target-groups, or leave it out."
                )
            return None
        own = "routes" if self.routes is not None else "charge"
        kinds = ("block", "cost") if self.routes is None else ("mean", "cost")
        units = _checks.one_of("--units", self.units or kinds[0], kinds)
        if self.routes is None and self.charge is None:
            return Groups(rows, cols, self._function(), units=units)
        for option in self._given(own, "units"):
            raise ValueError(
                f"--{option} belongs to another structure than --{own}; pass one of them."
            )
        if self.routes is not None:
            return Routes(rows, cols, self.routes, units=units)
        return Modular() + Coverage(rows, cols, weights=self.charge, units=units)

    def _given(self, *but: str) -> list[str]:
        names = [field.name for field in fields(self) if field.name not in but]
        return [name for name in names if getattr(self, name) is not None]

    def _function(self) -> functions.Concave:
        """g of the family that was named, or of the first one that has use for what was given."""
        given = {name for name in _PARAMETERS if getattr(self, name) is not None}
        if self.concave is None and not given:
            return functions.Discount(0.75)
        if self.concave is not None:
            name = _checks.one_of("--concave", self.concave, FAMILIES)
        else:
            fitting = (
                name for name, (_, use) in FAMILIES.items() if _needed(name) <= given <= set(use)
            )
            name = next(fitting, "")
            if not name:
                said = " and ".join(f"--{option}" for option in sorted(given))
                raise ValueError(f"{said} fit no concave function; choose one by --concave.")
        make, use = FAMILIES[name]
        for option in sorted(given - set(use)):
            takes = ", ".join(f"--{option}" for option in use) or "no parameter"
            raise ValueError(
                f"--{option} has no effect with --concave {name}, which takes {takes}."
            )
        for option in sorted(_needed(name) - given):
            raise ValueError(f"--concave {name} needs --{option}.")
        return make(**{use[option]: self._number(option) for option in given})

    def _number(self, option: str) -> Any:
        value = getattr(self, option)
        return numbers(f"--{option}", value) if isinstance(value, str) else value


def numbers(option: str, text: str) -> list[float]:
    """A list with commas."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{option} takes numbers with commas between; got {text!r}.") from None


def _needed(family: str) -> set[str]:
    make, use = FAMILIES[family]
    parameters = inspect.signature(make).parameters
    return {option for option, name in use.items() if parameters[name].default is inspect._empty}
