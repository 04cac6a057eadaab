"""One floor per idea: imports only go down, nothing private leaves its package, nothing is long."""

from __future__ import annotations

from pathlib import Path

import pytest
from architecture import Package, cycles, long, private, upward

import structot

# The lowest first; rooms of one floor may use each other. "." is the front door, `import structot`.
FLOORS = (
    "_typing _checks _extras _labels _files _progress _parsed _parallel _compilation _deadline "
    "_pixels",
    "groups datasets",
    "concave transport",
    "submodular",
    "blocks",
    "structures",
    "marginals problem",
    "certificate",
    "outcome",
    "result",
    "plot",
    "solvers torch",
    "adaptation text image",
    ".",
    "experiments explorer _warmup",
    "cli __main__",
)


def findings(package: Package, floors: tuple[str, ...]) -> set[str]:
    rules = (upward(package, floors), cycles(package), private(package), long(package))
    return {line for rule in rules for line in rule}


def test_the_house_is_in_order() -> None:
    found = findings(Package(Path(structot.__file__).parent), FLOORS)
    assert found == set()


# --------------------------------------------------------------------------------------------------
# The rules, on a made-up package
# --------------------------------------------------------------------------------------------------


def made_up(folder: Path, modules: dict[str, str]) -> Package:
    """The package "house" with the texts of some of its modules."""
    for name, text in {"__init__": "", **modules}.items():
        path = folder / "house" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / "__init__.py").touch()
        path.write_text(text)
    return Package(folder / "house")


LAZY = "def f():\n    {}\n"


@pytest.mark.parametrize(
    ("modules", "found"),
    [
        ({"attic/box": "from house.cellar.wine import red"}, set()),
        (
            {"cellar/rack": "import house.attic.trunk"},
            {"upward: house.cellar.rack imports house.attic.trunk"},
        ),
        (
            {"cellar/rack": LAZY.format("from house.attic import trunk")},
            {"upward: house.cellar.rack imports house.attic.trunk"},
        ),
        (
            {"cellar/rack": LAZY.format("from ..attic.trunk import lid")},
            {"upward: house.cellar.rack imports house.attic.trunk"},
        ),
        (
            {"cellar/rack": "import house"},
            {"upward: house.cellar.rack imports house"},
        ),
        (
            {"cellar/rack": "if TYPE_CHECKING:\n    import house.attic.trunk"},
            set(),
        ),
        ({"shed/tool": ""}, {"no floor: shed"}),
        (
            {"attic/a": "from . import b", "attic/b": LAZY.format("from house.attic.a import x")},
            {"cycle: house.attic.a -> house.attic.b -> house.attic.a"},
        ),
        ({"attic/box": "from house.attic import _moths"}, set()),
        (
            {"roof/tile": "from house.attic._moths import one"},
            {"private: house.roof.tile imports house.attic._moths.one"},
        ),
        (
            {"roof/tile": "from house.attic.trunk import _lid"},
            {"private: house.roof.tile imports house.attic.trunk._lid"},
        ),
        ({"roof/tile": "from house._tools import saw", "_tools": ""}, set()),
        (
            {"roof/tile": "from house._tools import _saw", "_tools": ""},
            {"private: house.roof.tile imports house._tools._saw"},
        ),
        ({"attic/box": "x = 1\n" * 400}, set()),
        ({"attic/box": "x = 1\n" * 401}, {"long: house.attic.box"}),
        ({"attic/box": "def f():\n" + "    x = 1\n" * 59}, set()),
        ({"attic/box": "def f():\n" + "    x = 1\n" * 60}, {"long: house.attic.box.f"}),
        ({"attic/box": 'def f():\n    """A\n    b."""\n' + "    x = 1\n" * 59}, set()),
    ],
)
def test_a_rule_finds_what_breaks_it(tmp_path: Path, modules: dict, found: set) -> None:
    rest = {"cellar/wine": "", "attic/trunk": "", "attic/_moths": ""}
    package = made_up(tmp_path, {**rest, **modules})
    assert findings(package, ("_tools cellar", "attic roof", ".")) == found


def test_a_package_that_leads_back_to_its_user_is_a_cycle(tmp_path: Path) -> None:
    modules = {"attic/trunk": "", "attic/__init__": "import house.roof.tile"}
    modules["roof/tile"] = "from house.attic.trunk import lid"
    assert findings(made_up(tmp_path, modules), ("attic roof", ".")) == {
        "cycle: house.attic -> house.roof.tile -> house.attic"
    }
