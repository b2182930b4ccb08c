"""The lists beside this file: mutants of the Redis functions, and survivors that may survive."""

import tomllib
from pathlib import Path

from tests.mutants.mutant import Mutant, mutant_of

HERE = Path(__file__).parent
LUA = "fleet/adapters/redis/functions.lua"


def lua_mutants(root: Path) -> list[Mutant]:
    """Return the mutants of `lua.toml`; raises ValueError for one that does not apply at exactly one place."""
    source = (root / LUA).read_text(encoding="utf-8")
    rows = tomllib.loads((HERE / "lua.toml").read_text(encoding="utf-8"))["mutant"]
    return [applied(LUA, source, row["was"], row["becomes"], row["what"]) for row in rows]


def applied(path: str, source: str, was: str, becomes: str, what: str) -> Mutant:
    """Return the mutant that has `becomes` in place of `was`, which stands in the file once."""
    if source.count(was) != 1 or was == becomes:
        raise ValueError(f"{path}: this stands {source.count(was)} times in it: {was}")
    return mutant_of(path, what, source, source.replace(was, becomes))


def accepted() -> dict[str, str]:
    """Return the reason for each survivor that may be one, by the mutant's name."""
    rows = tomllib.loads((HERE / "accepted.toml").read_text(encoding="utf-8")).get("survivor", [])
    return {row["mutant"]: row["reason"] for row in rows}
