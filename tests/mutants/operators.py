"""The ways to change one place of a Python file: those of mutmut, and two of our own.

Of mutmut we use only the operators. Its runner keeps all mutants of a function in one file and forks after the tests
were imported, so a test that starts servers or looks at a function's frames meets another program. cosmic-ray runs
one command for every mutant, so a mutant cannot meet the tests of its own line first. Neither draws a sample.
"""

import ast
import hashlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import libcst as cst
from mutmut.mutation.mutators import mutation_operators, operator_swap_op

from tests.mutants.mutant import Mutant, mutant_of

_SILENT = {"log.debug", "log.info", "log.warning", "log.error", "logging.getLogger", "cast", "TypeVar", "ParamSpec"}
"""Calls that say something to people or to mypy: their arguments are not changed."""
_SWAPPED = (cst.BinaryOperation, cst.UnaryOperation, cst.BooleanOperation, cst.ComparisonTarget, cst.AugAssign)


def _remove_statement(node: cst.Expr) -> Iterator[cst.CSTNode]:
    if isinstance(node.value, cst.Call | cst.Await):
        yield cst.Pass()


def _negate_condition(node: cst.If | cst.While) -> Iterator[cst.CSTNode]:
    test = node.test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    yield node.with_changes(test=cst.UnaryOperation(cst.Not(), test))


_OPERATORS = (
    # mutmut asks every node whether it is one of these, which takes most of the time of a sample.
    *((_SWAPPED if operator is operator_swap_op else kind, operator) for kind, operator in mutation_operators),
    (cst.Expr, _remove_statement),
    (cst.If, _negate_condition),
    (cst.While, _negate_condition),
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where an operator applies: `number` counts its places within the function."""

    path: str
    function: str
    operator: str
    number: int
    node: cst.CSTNode
    variants: tuple[cst.CSTNode, ...]

    def draw(self, seed: str) -> str:
        """Return a number that depends on nothing but the seed and this place: the smallest ones are the sample."""
        named = "|".join((seed, self.path, self.function, self.operator, str(self.number)))
        return hashlib.sha256(named.encode()).hexdigest()


class _Places(cst.CSTVisitor):
    """Collects the places of one file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._inside: list[str] = []
        self._raising = 0
        self._counts: dict[tuple[str, str], int] = {}
        self.found: list[Place] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        if _is_silent(node):
            return False
        if isinstance(node, cst.FunctionDef | cst.ClassDef):
            self._inside.append(node.name.value)
        self._raising += _is_error(node)
        if not (self._raising and isinstance(node, cst.BaseString)):
            self._apply(node)
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        if _is_silent(original_node):
            return
        if isinstance(original_node, cst.FunctionDef | cst.ClassDef):
            self._inside.pop()
        self._raising -= _is_error(original_node)

    def _apply(self, node: cst.CSTNode) -> None:
        function = ".".join(self._inside)
        for kind, operator in _OPERATORS:
            variants = tuple(operator(node)) if isinstance(node, kind) else ()
            if variants:
                name = operator.__name__
                number = self._counts.get((function, name), 0)
                self._counts[function, name] = number + 1
                self.found.append(Place(self._path, function, name, number, node, variants))


def _is_error(node: cst.CSTNode) -> bool:
    """Return whether the text in a node is that of an error."""
    return isinstance(node, cst.Raise) or (isinstance(node, cst.Call) and _dotted(node.func).endswith("Error"))


def _is_silent(node: cst.CSTNode) -> bool:
    """Return whether a node says something to people or to mypy only."""
    if isinstance(node, cst.Annotation | cst.Decorator | cst.Import | cst.ImportFrom):
        return True
    if isinstance(node, cst.Expr) and isinstance(node.value, cst.Call):
        return _is_silent(node.value)
    if isinstance(node, cst.Expr):
        return isinstance(node.value, cst.BaseString)
    if isinstance(node, cst.Assign):
        name = _dotted(node.targets[0].target)
        # A type's other name, or the logger.
        return name == "log" or (name.lstrip("_")[:1].isupper() and not name.isupper())
    return isinstance(node, cst.Call) and _dotted(node.func) in _SILENT


def _dotted(node: cst.BaseExpression) -> str:
    if isinstance(node, cst.Attribute):
        return f"{_dotted(node.value)}.{node.attr.value}"
    return node.value if isinstance(node, cst.Name) else ""


def sample(root: Path, paths: Iterable[str], size: int, seed: str) -> list[Mutant]:
    """Return mutants of Python files, at most one of a place; a file that changes leaves those of the others alone."""
    sources = {path: (root / path).read_text(encoding="utf-8") for path in paths}
    modules = {path: cst.parse_module(source) for path, source in sources.items()}
    found = [place for path, module in modules.items() for place in _places(path, module)]
    programs = {path: ast.dump(ast.parse(source)) for path, source in sources.items()}
    mutants: dict[str, Mutant] = {}
    for place in sorted(found, key=lambda place: place.draw(seed)):
        if len(mutants) == size:
            break
        variant = place.variants[int(place.draw(seed)[-8:], 16) % len(place.variants)]
        changed = cst.ensure_type(modules[place.path].deep_replace(place.node, variant), cst.Module).code
        with suppress(SyntaxError):
            if ast.dump(ast.parse(changed)) != programs[place.path]:
                one = mutant_of(place.path, place.function, sources[place.path], changed)
                mutants.setdefault(one.name, one)
    return list(mutants.values())


def _places(path: str, module: cst.Module) -> list[Place]:
    visitor = _Places(path)
    module.visit(visitor)
    return visitor.found
