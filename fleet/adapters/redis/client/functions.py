"""The Redis functions of this version, under names that no other version has (docs/adr/0016-function-names.md)."""

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import ResponseError

from fleet.adapters.redis.client.client import execute

_LIBRARY = "fleet"
_MARK_LENGTH = 8
_HEADING = re.compile(rf"\A#!lua name={_LIBRARY}$", re.MULTILINE)
_REGISTERED = re.compile(r"(?<=redis\.register_function\(')(\w+)(?=')")


@dataclass(frozen=True, slots=True)
class Functions:
    """A library: its name, its code, and the mark that its functions carry."""

    library: str
    code: str
    mark: str

    def name(self, function: str) -> str:
        """Return the server's name of a function in `functions.lua`."""
        return _marked_name(function, self.mark)


@cache
def _marked_name(function: str, mark: str) -> str:
    return f"{function}_{mark}"


@cache
def functions() -> Functions:
    """Return the functions of this version."""
    source = (files("fleet.adapters.redis") / "functions.lua").read_text(encoding="utf-8")
    return marked(source)


def marked(source: str) -> Functions:
    """Give library and functions a mark that depends on the code."""
    mark = hashlib.sha256(source.encode()).hexdigest()[:_MARK_LENGTH]
    library = f"{_LIBRARY}_{mark}"
    code = _HEADING.sub(f"#!lua name={library}", source)
    return Functions(library, _REGISTERED.sub(rf"\1_{mark}", code), mark)


async def libraries(node: Redis) -> list[str] | None:
    """Return the names of fleet's libraries of all versions on a server; None if it refuses to list them."""
    try:
        answer = await execute(node, "FUNCTION LIST", "LIBRARYNAME", f"{_LIBRARY}*")
    except ResponseError:
        return None
    return [name for name in map(_named, answer) if name == _LIBRARY or name.startswith(f"{_LIBRARY}_")]


async def forget_others(node: Redis, own: Functions) -> None:
    """Delete the libraries of other versions. A running process of such a version loads its own again."""
    for name in await libraries(node) or []:
        if name != own.library:
            try:
                await execute(node, "FUNCTION DELETE", name)
            except ResponseError:
                # Another process was faster, or the command is forbidden; the libraries do no harm.
                continue


def _named(library: Any) -> str:
    """Return the name out of a library's description: a list of names and values, or a dictionary."""
    pairs = library if isinstance(library, dict) else dict(zip(library[::2], library[1::2], strict=True))
    return str(pairs["library_name"])
