"""Reads the imports and the sizes of a package without running it.

A finding is a line of text: the rule, the module, and what it does against the rule. Imports inside
functions count; those for type checkers only (``if TYPE_CHECKING``) bind no module to another when
the program runs, and do not count.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

LONGEST_FILE, LONGEST_FUNCTION = 400, 60

Import = tuple[str, str | None]  # module, and the name taken from it if that is no module


class Package:
    """The modules of the package in a folder, and what they import from each other."""

    def __init__(self, folder: Path) -> None:
        self.name = folder.name
        self.text: dict[str, str] = {}
        self.packages: set[str] = set()
        for path in sorted(folder.rglob("*.py")):
            parts = [self.name, *path.relative_to(folder).with_suffix("").parts]
            if parts[-1] == "__init__":
                parts.pop()
                self.packages.add(".".join(parts))
            self.text[".".join(parts)] = path.read_text(encoding="utf-8")
        self.tree = {module: ast.parse(text) for module, text in self.text.items()}
        self.imports = {module: list(self._imports(module)) for module in self.tree}

    def _imports(self, module: str) -> Iterator[Import]:
        for node in _running(self.tree[module]):
            if isinstance(node, ast.Import):
                yield from ((alias.name, None) for alias in node.names if self._has(alias.name))
            elif isinstance(node, ast.ImportFrom):
                source = self._absolute(module, node)
                if self._has(source):
                    for alias in node.names:
                        whole = f"{source}.{alias.name}"
                        yield (whole, None) if self._has(whole) else (source, alias.name)

    def _absolute(self, module: str, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        home = module.split(".") if module in self.packages else module.split(".")[:-1]
        base = home[: len(home) - node.level + 1]
        return ".".join([*base, node.module] if node.module else base)

    def _has(self, module: str) -> bool:
        return module in self.tree

    def parent(self, module: str) -> str:
        """The package a module is in; a package is in itself."""
        return module if module in self.packages else module.rpartition(".")[0]

    def room(self, module: str) -> str:
        """The first part of the name below the package; empty for the package itself."""
        return (module.split(".") + [""])[1]


def _running(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those below ``if TYPE_CHECKING``."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            continue
        yield node
        yield from _running(node)


def upward(package: Package, floors: Sequence[str]) -> Iterator[str]:
    """Imports of a higher floor. A floor is a line of rooms, the lowest first; "." is the front."""
    floor = {room: k for k, rooms in enumerate(floors) for room in rooms.split()}
    for module, imports in package.imports.items():
        here = package.room(module) or "."
        if here not in floor:
            yield f"no floor: {here}"
        elif here != ".":  # the front door leads everywhere
            for target, _ in imports:
                there = package.room(target) or "."
                if floor.get(there, -1) > floor[here]:
                    yield f"upward: {module} imports {target}"


def cycles(package: Package) -> Iterator[str]:
    """Modules that import each other in a circle, one circle for each import that closes one."""
    graph = {module: set(_runs(package, module)) for module in package.imports}
    done: set[str] = set()

    def visit(module: str, path: list[str]) -> Iterator[str]:
        if module in path:
            yield "cycle: " + " -> ".join([*path[path.index(module) :], module])
        elif module not in done:
            for target in sorted(graph[module]):
                yield from visit(target, [*path, module])
            done.add(module)

    for module in sorted(graph):
        yield from visit(module, [])


def _runs(package: Package, module: str) -> Iterator[str]:
    """What a module imports; from another package, that package's ``__init__`` is run first."""
    for target, _ in package.imports[module]:
        yield target
        home = package.parent(target)
        if home not in (package.parent(module), package.name):
            yield home


def private(package: Package) -> Iterator[str]:
    """Private modules used from outside their package, private names from another package."""
    for module, imports in package.imports.items():
        for target, name in imports:
            home, _, last = target.rpartition(".")
            foreign = _is_private(last) and not f"{module}.".startswith(f"{home}.")
            if name and _is_private(name):
                foreign |= package.parent(module) != package.parent(target)
            if foreign:
                yield f"private: {module} imports {f'{target}.{name}' if name else target}"


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def long(package: Package) -> Iterator[str]:
    """Files and functions that are too long, docstrings of functions not counted."""
    for module, text in package.text.items():
        if len(text.splitlines()) > LONGEST_FILE:
            yield f"long: {module}"
        for node in ast.walk(package.tree[module]):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = _lines(node)
                if ast.get_docstring(node) is not None:
                    lines -= _lines(node.body[0])
                if lines > LONGEST_FUNCTION:
                    yield f"long: {module}.{node.name}"


def _lines(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1
