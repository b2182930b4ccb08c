"""What came of the checks, for machines: JSON and JUnit XML."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree as Xml

from pydantic import BaseModel

Outcome = Literal["passed", "failed", "skipped"]


class Result(BaseModel):
    """One check on one profile; `seen` is what was seen, or why it was skipped."""

    id: str
    title: str
    profile: str
    round: int = 1
    outcome: Outcome
    seen: str
    seconds: float


class Results(BaseModel):
    """A whole run against one server."""

    server: str
    results: list[Result]

    @property
    def ok(self) -> bool:
        """Whether something passed and nothing failed."""
        outcomes = self.counts()
        return outcomes["passed"] > 0 and outcomes["failed"] == 0

    def counts(self) -> dict[Outcome, int]:
        counts: dict[Outcome, int] = {"passed": 0, "failed": 0, "skipped": 0}
        for result in self.results:
            counts[result.outcome] += 1
        return counts

    def write_json(self, path: Path) -> None:
        path.write_text(self.model_dump_json(indent=2) + "\n", encoding="utf-8")

    def write_junit(self, path: Path) -> None:
        """Write one test suite a profile."""
        root = Xml.Element("testsuites", name="conformance")
        for profile in dict.fromkeys(result.profile for result in self.results):
            root.append(_suite(profile, [result for result in self.results if result.profile == profile]))
        Xml.indent(root)
        Xml.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _suite(profile: str, results: Sequence[Result]) -> Xml.Element:
    def count(outcome: Outcome) -> str:
        return str(sum(result.outcome == outcome for result in results))

    suite = Xml.Element(
        "testsuite",
        name=f"conformance.{profile}",
        tests=str(len(results)),
        failures=count("failed"),
        skipped=count("skipped"),
        time=f"{sum(result.seconds for result in results):.3f}",
    )
    suite.extend(_case(result) for result in results)
    return suite


def _case(result: Result) -> Xml.Element:
    name = f"{result.id} {result.title}" + (f" (round {result.round})" if result.round > 1 else "")
    case = Xml.Element("testcase", classname=f"conformance.{result.profile}", name=name, time=f"{result.seconds:.3f}")
    if result.outcome == "failed":
        Xml.SubElement(case, "failure", message=_printable(result.seen))
    elif result.outcome == "skipped":
        Xml.SubElement(case, "skipped", message=_printable(result.seen))
    else:
        Xml.SubElement(case, "system-out").text = _printable(result.seen)
    return case


def _printable(text: str) -> str:
    """Return a text without the control characters that XML forbids."""
    return "".join(char if char.isprintable() or char in "\n\t" else "\ufffd" for char in text)
