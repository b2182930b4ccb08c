import json
from pathlib import Path
from xml.etree import ElementTree as Xml

from fleet.workbench.conformance.results import Outcome, Result, Results


def result(id_: str, outcome: Outcome, *, profile: str = "P1", seen: str = "seen", number: int = 1) -> Result:
    return Result(id=id_, title="it holds", profile=profile, round=number, outcome=outcome, seen=seen, seconds=0.25)


def results(*each: Result) -> Results:
    return Results(server="http://server/", results=list(each))


def test_a_run_is_good_when_something_passed_and_nothing_failed() -> None:
    assert results(result("H1", "passed"), result("H7", "skipped")).ok
    assert not results(result("H7", "skipped")).ok
    assert not results(result("H1", "passed"), result("H2", "failed")).ok


def test_json_holds_everything(tmp_path: Path) -> None:
    whole = results(result("H1", "passed"), result("H2", "failed", seen='a "quote" and 你好'))
    whole.write_json(tmp_path / "r.json")
    assert Results.model_validate(json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))) == whole


def test_junit_has_a_suite_for_each_profile_with_its_counts(tmp_path: Path) -> None:
    results(
        result("H1", "passed", seen="12 ms"),
        result("H2", "failed", seen="no hello"),
        result("H7", "skipped", seen="not known"),
        result("H1", "passed", profile="P5", number=2),
    ).write_junit(tmp_path / "r.xml")
    root = Xml.parse(tmp_path / "r.xml").getroot()
    first, second = root.findall("testsuite")
    assert first.attrib == {
        "name": "conformance.P1",
        "tests": "3",
        "failures": "1",
        "skipped": "1",
        "time": "0.750",
    }
    assert [case.get("name") for case in first] == ["H1 it holds", "H2 it holds", "H7 it holds"]
    assert first.findtext("testcase/system-out") == "12 ms"
    assert [one.get("message") for one in first.iter("failure")] == ["no hello"]
    assert [one.get("message") for one in first.iter("skipped")] == ["not known"]
    assert second[0].get("name") == "H1 it holds (round 2)"
    assert second[0].get("classname") == "conformance.P5"


def test_junit_is_valid_whatever_a_server_sent(tmp_path: Path) -> None:
    nasty = "\x00\x1b[31m <b>&amp;]]> \ud800 \uffff"
    results(result("H1", "failed", seen=nasty), result("H2", "passed", seen=nasty)).write_junit(tmp_path / "r.xml")
    failure, output = Xml.parse(tmp_path / "r.xml").getroot()[0]
    assert "<b>&amp;]]>" in str(failure[0].get("message"))
    assert "<b>&amp;]]>" in str(output[0].text)
