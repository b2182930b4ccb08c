"""What `scripts/audit` makes of pip-audit's answers; those below are what pip-audit 2.10.1 wrote."""

import json
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts/audit"


def load() -> Any:
    spec = spec_from_loader("audit", SourceFileLoader("audit", str(SCRIPT)))
    assert spec and spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


audit = load()
WEAK = {
    "name": "jinja2",
    "version": "2.4.1",
    "vulns": [
        {"id": "PYSEC-2019-217", "fix_versions": ["2.10.1"], "aliases": ["CVE-2019-10906"]},
        {"id": "PYSEC-2014-8", "fix_versions": [], "aliases": []},
    ],
}
SOUND = {"name": "anyio", "version": "4.16.0", "vulns": []}
MISSED = {
    "name": "aiomqtt",
    "skip_reason": "Dependency not found on PyPI and could not be audited: aiomqtt (2.5.1)",
}


def answer(*packages: dict[str, Any]) -> Any:
    return audit.read(json.dumps({"dependencies": packages, "fixes": []}))


def test_nothing_known_of_packages_that_were_all_looked_up_is_code_0() -> None:
    assert audit.judge(answer(SOUND)) == (0, "no vulnerability is known of any of the 1 packages")


def test_each_known_vulnerability_is_named_with_its_mend() -> None:
    code, said = audit.judge(answer(SOUND, WEAK))
    assert code == 1
    assert said.splitlines() == [
        "2 known vulnerabilities:",
        "  jinja2 2.4.1: PYSEC-2014-8; mended in no version",
        "  jinja2 2.4.1: PYSEC-2019-217, CVE-2019-10906; mended in 2.10.1",
    ]


def test_a_source_that_knows_no_package_is_no_good_news() -> None:
    """pip-audit itself ends with 0 and "No known vulnerabilities found" then."""
    code, said = audit.judge(answer(MISSED))
    assert (code, said) == (3, "no source of advisories answered: nothing is known about any package")


def test_what_was_not_looked_up_is_named() -> None:
    code, said = audit.judge(answer(SOUND, MISSED))
    assert code == 3
    assert "nothing is known about aiomqtt:" in said
    code, said = audit.judge(answer(WEAK, MISSED))
    assert code == 1
    assert "nothing is known about aiomqtt:" in said


def test_what_one_source_does_not_know_another_one_may() -> None:
    both = answer(SOUND, MISSED).with_more(answer({"name": "aiomqtt", "version": "2.5.1", "vulns": []}))
    assert audit.judge(both)[0] == 0
    assert audit.judge(answer(WEAK, MISSED).with_more(answer(MISSED, SOUND)))[0] == 1


@pytest.mark.parametrize("said", ["", "Traceback", "[]", "{}", "null"])
def test_a_source_that_is_away_gives_no_answer(said: str) -> None:
    assert audit.read(said) is None


def test_the_locks_that_are_audited_are_those_that_are_there() -> None:
    root = SCRIPT.parents[1]
    found = [
        *root.glob("*.lock"),
        *(path for part in ("deploy", "docs", "tests") for path in (root / part).rglob("*.lock")),
    ]
    assert set(audit.LOCKS) == {str(path.relative_to(root)) for path in found}
