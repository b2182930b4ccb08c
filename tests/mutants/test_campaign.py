"""The tool itself, on a project of two functions."""

import subprocess
from pathlib import Path

import pytest

from tests.mutants.campaign import ROOT, Campaign
from tests.mutants.lists import applied, lua_mutants
from tests.mutants.operators import sample
from tests.mutants.project import Project
from tests.mutants.report import KILLED, SURVIVED, report
from tests.mutants.selection import Test, functions_above, stages

SOURCE = """\
log = print


def price(pieces: int, each: int = 2) -> int:
    log.info("a price")
    return pieces * each if pieces < 10 else pieces


def unused() -> int:
    return 1
"""
TEST = """\
from shop.price import price


def test_a_price():
    assert price(3) == 6
"""


@pytest.fixture
def shop(tmp_path: Path) -> Project:
    root = tmp_path / "checkout"
    for path, text in (
        ("shop/price.py", SOURCE.replace("log = print", "import logging\n\nlog = logging.getLogger()")),
        ("tests/unit/shop/test_price.py", TEST),
        ("pyproject.toml", '[tool.pytest.ini_options]\naddopts = "--import-mode=importlib"\npythonpath = ["."]\n'),
    ):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    return Project(root, rooms=("shop/",), tests=("tests/unit/",))


def test_a_mutant_is_killed_survives_or_is_run_by_no_test_and_the_results_are_kept(
    shop: Project, tmp_path: Path
) -> None:
    source = (shop.root / "shop/price.py").read_text(encoding="utf-8")
    mutants = [
        applied("shop/price.py", source, was, becomes, "")
        for was, becomes in (("* each", "+ each"), ("< 10", "<= 10"), ("return 1", "return 2"))
    ]
    place, said = tmp_path / "place", list[str]()
    place.mkdir()
    results = Campaign(shop, place, 1, said.append).run(mutants)
    assert [result.outcome for result in results] == [KILLED, SURVIVED, SURVIVED]
    assert results[0].killer == "tests/unit/shop/test_price.py::test_a_price"
    assert results[2].killer == "no test runs it"
    assert (shop.root / "shop/price.py").read_text(encoding="utf-8") == source
    said.clear()
    assert Campaign(shop, place, 1, said.append).run(mutants) == results
    assert said == ["3 of 3 results are known"]
    (shop.root / "tests/unit/shop/test_price.py").write_text(f"{TEST}    assert price(10) == 10\n", encoding="utf-8")
    assert [result.outcome for result in Campaign(shop, place, 1, said.append).run(mutants)] == [
        KILLED,
        KILLED,
        SURVIVED,
    ]
    said.clear()
    (shop.root / "tests/unit/shop/test_other.py").write_text("def test_nothing():\n    pass\n", encoding="utf-8")
    Campaign(shop, place, 1, said.append).run(mutants)
    assert "3 of 3 results are known" in said
    (shop.root / "tests/helper.py").write_text("MORE = 1\n", encoding="utf-8")
    Campaign(shop, place, 1, said.append).run(mutants)
    assert "2 of 3 results are known" in said
    text, good = report(results, {mutant.name: "not worth it" for mutant in mutants[1:]})
    assert not good and "33.3% noticed" in text


def test_tests_whose_measurement_did_not_come_to_an_end_are_measured_by_the_next_start(
    shop: Project, tmp_path: Path
) -> None:
    source = (shop.root / "shop/price.py").read_text(encoding="utf-8")
    mutants = [applied("shop/price.py", source, "* each", "+ each", "")]
    ends = tmp_path / "ends"
    text = f"import os, pathlib\n{TEST}    if pathlib.Path({str(ends)!r}).exists():\n        os._exit(3)\n"
    (shop.root / "tests/unit/shop/test_price.py").write_text(text, encoding="utf-8")
    place, said = tmp_path / "place", list[str]()
    place.mkdir()
    ends.touch()
    assert [result.outcome for result in Campaign(shop, place, 1, said.append).run(mutants)] == [SURVIVED]
    assert "left out, as it does not pass without any mutant: tests/unit/shop/test_price.py" in said
    ends.unlink()
    assert [result.outcome for result in Campaign(shop, place, 1, said.append).run(mutants)] == [KILLED]


def test_a_constant_is_tried_by_all_tests_of_its_file(shop: Project, tmp_path: Path) -> None:
    """Not only by the first one, in which the file is imported."""
    source = f"EACH = 2\n{(shop.root / 'shop/price.py').read_text(encoding='utf-8')}"
    (shop.root / "shop/price.py").write_text(source.replace("each: int = 2", "each: int = EACH"), encoding="utf-8")
    lazily = TEST.replace("from shop.price import price\n", "").replace("    assert", "    {}\n    assert")
    texts = [lazily.format("import shop.price as price").replace("price(3) == 6", "price")]
    texts.append(lazily.format("from shop.price import price").replace("test_a_price", "test_b_price"))
    (shop.root / "tests/unit/shop/test_price.py").write_text("\n".join(texts), encoding="utf-8")
    place = tmp_path / "place"
    place.mkdir()
    source = (shop.root / "shop/price.py").read_text(encoding="utf-8")
    mutants = [applied("shop/price.py", source, "EACH = 2", "EACH = 3", "")]
    [result] = Campaign(shop, place, 1, list[str]().append).run(mutants)
    assert result.killer == "tests/unit/shop/test_price.py::test_b_price"


def test_a_file_of_constants_alone_is_tried_by_the_tests_that_are_named_after_it(shop: Project, tmp_path: Path) -> None:
    (shop.root / "shop/limits.py").write_text("MOST = 3\n", encoding="utf-8")
    text = "from shop.limits import MOST\n\n\ndef test_most():\n    assert MOST == 3\n"
    (shop.root / "tests/unit/shop/test_limits.py").write_text(text, encoding="utf-8")
    place = tmp_path / "place"
    place.mkdir()
    mutants = [applied("shop/limits.py", "MOST = 3\n", "MOST = 3", "MOST = 4", "")]
    [result] = Campaign(shop, place, 1, list[str]().append).run(mutants)
    assert result.killer == "tests/unit/shop/test_limits.py::test_most"


def test_nothing_is_kept_of_a_run_whose_process_was_ended(shop: Project, tmp_path: Path) -> None:
    source = (shop.root / "shop/price.py").read_text(encoding="utf-8")
    text = f"import os, signal\n{TEST}\n\ndef test_the_end():\n    os.kill(os.getppid(), signal.SIGKILL)\n"
    (shop.root / "tests/unit/shop/test_price.py").write_text(text, encoding="utf-8")
    place = tmp_path / "place"
    place.mkdir()
    with pytest.raises(EOFError, match="was ended"):
        Campaign(shop, place, 1, list[str]().append).run([applied("shop/price.py", source, "* each", "+ each", "")])
    assert not [*place.glob("coverage/*"), *place.glob("results.jsonl")]


def test_a_survivor_must_be_on_the_list(shop: Project, tmp_path: Path) -> None:
    found = sample(shop.root, ["shop/price.py"], 500, "1")
    assert found == sample(shop.root, ["shop/price.py"], 500, "1")
    names = {mutant.name for mutant in found}
    assert any(name.endswith("pieces * each if pieces <= 10 else pieces") for name in names)
    assert not any("XXa priceXX" in name or ": None" in name for name in names)


def test_each_mutant_of_the_redis_functions_applies_at_one_place() -> None:
    assert len({mutant.name for mutant in lua_mutants(ROOT)}) == 30
    with pytest.raises(ValueError, match="stands 2 times"):
        applied("a.lua", "end end", "end", "", "")


def test_a_line_of_lua_belongs_to_the_functions_that_reach_it() -> None:
    source = (ROOT / "fleet/adapters/redis/functions.lua").read_text(encoding="utf-8")
    line = source.count("\n", 0, source.index("local function settle(")) + 2
    assert functions_above(source, line) == {"fleet_call_finish", "fleet_sweep"}


def test_a_mutant_first_meets_the_tests_of_its_own_file_then_those_of_its_room() -> None:
    mutant = applied("fleet/adapters/redis/client/client.py", "a = 1\n", "1", "2", "")
    nearest_first = [
        "tests/unit/adapters/redis/client/test_client.py",
        "tests/unit/adapters/redis/test_keys.py",
        "tests/unit/core/test_agent.py",
        "tests/integration/redis/test_client.py",
        "tests/integration/redis/test_calls.py",
        "tests/integration/worker/test_tools.py",
    ]
    tests = [Test(f"{path}::test", 3.0 - at / 10, frozenset()) for at, path in enumerate(nearest_first)]
    unit, others = stages(mutant, tests, 9.0)
    assert [test.name for test in (*unit, *others)] == [test.name for test in tests]
    assert [len(stage) for stage in stages(mutant, tests, 6.0)] == [2, 2]
