"""The figures of a demo as JSON, for programs."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from pydantic import JsonValue

from fleet.ground.errors import writing
from fleet.workbench.demo.results import DemoResult, TurnResult
from fleet.workbench.demo.stages import medians
from fleet.workbench.demo.verdict import Check


def write_figures(path: Path, demo: DemoResult, checks: Sequence[Check], memory: int) -> None:
    """Write the figures.

    Args:
        path: The file.
        demo: The results.
        checks: What was judged.
        memory: Resident bytes of the server; 0 if they are not known.

    Raises:
        ConfigError: The file cannot be written.
    """
    answers = [answer for scene in demo.scenes for answer in scene.answers]
    figures = {
        "ok": all(check.ok for check in checks),
        "checks": [asdict(check) for check in checks],
        "answers": [_answer(answer) for answer in answers],
        "median_ms": _milliseconds(medians([answer.stages for answer in answers])),
        "violations": list(demo.violations),
        "memory_bytes": memory or None,
    }
    with writing(path):
        path.write_text(json.dumps(figures, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def _answer(answer: TurnResult) -> dict[str, JsonValue]:
    return {
        "language": answer.line.language,
        "text": answer.line.text,
        "understood": answer.understood,
        "tools": list(answer.calls),
        "reply": answer.reply,
        "heard": answer.heard,
        "outcome": answer.outcome,
        "filler": answer.filled,
        "ms": _milliseconds(answer.stages),
    }


def _milliseconds(stages: Mapping[str, float]) -> dict[str, JsonValue]:
    return {name: round(seconds * 1000, 1) for name, seconds in stages.items()}
