"""A product file with one place changed."""

import ast
import difflib
import hashlib
import re
from dataclasses import dataclass

ROOMS = ("fleet/core", "fleet/roles/worker", "fleet/adapters/redis", "functions.lua")


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of a file.

    `first` and `last` are the changed lines of the original, from 1. `function` is the dotted name of the function
    around them, or '' at the top of a module. `original` is the digest of the program that was changed: it does not
    depend on comments and docstrings.
    """

    path: str
    function: str
    first: int
    last: int
    was: str
    becomes: str
    original: str
    source: str

    @property
    def room(self) -> str:
        if self.path.endswith(".lua"):
            return "functions.lua"
        return next((room for room in ROOMS if self.path.startswith(f"{room}/")), self.path.rpartition("/")[0])

    @property
    def name(self) -> str:
        """Names the mutant in a list of survivors; it holds as long as the changed lines stay what they are."""
        return f"{self.path} {self.function}: {self.was} -> {self.becomes}"


def mutant_of(path: str, function: str, source: str, changed: str) -> Mutant:
    """Describe a changed file by the lines that differ."""
    before, after = source.splitlines(), changed.splitlines()
    differences = [
        code
        for code in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        if code[0] != "equal"
    ]
    start, stop = differences[0][1], differences[-1][2]
    was, becomes = before[start:stop], after[differences[0][3] : differences[-1][4]]
    return Mutant(
        path,
        function,
        start + 1,
        max(stop, start + 1),
        _one_line(was),
        _one_line(becomes),
        _digest_of_program(path, source),
        changed,
    )


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _digest_of_program(path: str, source: str) -> str:
    if not path.endswith(".py"):
        return digest(re.sub(r"^\s*--.*\n", "", source, flags=re.MULTILINE))
    module = ast.parse(source)
    for node in ast.walk(module):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value.value = ""
    return digest(ast.dump(module))


def _one_line(lines: list[str]) -> str:
    return " ".join(" ".join(line.split()) for line in lines) or "(nothing)"
