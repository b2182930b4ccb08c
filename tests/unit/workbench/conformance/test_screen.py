from io import StringIO

from rich.console import Console

from fleet.workbench.conformance.catalogue import Check
from fleet.workbench.conformance.context import CheckContext
from fleet.workbench.conformance.results import Outcome, Result, Results
from fleet.workbench.conformance.run import Task
from fleet.workbench.conformance.screen import progress, show
from fleet.workbench.sim.profiles.profile import find_profile

NASTY = r"[/red] [bold]{x}[/] [link=http://x]y[/link] :smile: C:\[1] \ "


async def run(_: CheckContext) -> str:
    return ""


def result(id_: str, outcome: Outcome, profile: str = "P1", seen: str = NASTY) -> Result:
    return Result(id=id_, title="[it] holds", profile=profile, outcome=outcome, seen=seen, seconds=0.1)


def shown(*results: Result) -> str:
    out = StringIO()
    show(Console(file=out, width=200), Results(server="http://[::1]:8000/[x]", results=list(results)))
    return out.getvalue()


def test_what_a_server_sent_is_shown_as_it_is() -> None:
    text = shown(result("H1", "failed"), result("H2", "passed"), result("H3", "skipped"))
    assert text.count("[/red] [bold]{x}[/]") == 4
    assert "http://[::1]:8000/[x]" in text
    assert "[it] holds" in text
    assert "1 passed · 1 failed · 1 skipped" in text


def test_a_check_has_one_line_with_a_sign_for_each_profile_and_the_worst_that_was_seen() -> None:
    text = shown(
        result("H1", "passed", "P1", "fine"), result("H1", "failed", "P5", "dreadful"), result("H2", "passed", "P1")
    )
    line = next(line for line in text.splitlines() if "H1" in line)
    assert "✓" in line
    assert "✗" in line
    assert "dreadful" in line
    assert "fine" not in line


def test_rounds_that_failed_are_counted() -> None:
    text = shown(result("H1", "passed"), result("H1", "failed"), result("H1", "passed"))
    assert "✗ 1/3" in text


def test_a_failure_is_shown_at_once() -> None:
    out = StringIO()
    task = Task(Check("H1", "it holds", run), find_profile("P1"))
    with progress(Console(file=out, width=200), 2) as observer:
        observer.begun(task)
        observer.begun(task)
        observer.ended(result("H1", "passed"))
        observer.ended(result("H1", "failed"))
    assert out.getvalue().count("H1 P1 failed: [/red] [bold]{x}[/]") == 1
