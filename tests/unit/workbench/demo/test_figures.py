import json
from pathlib import Path

import pytest

from fleet.ground.errors import ConfigError
from fleet.workbench.demo.figures import write_figures
from fleet.workbench.demo.results import DemoResult, SceneResult, TurnResult
from fleet.workbench.demo.script import SCENES
from fleet.workbench.demo.verdict import Check

SCENE = SCENES["en"]


def answer(asr: float) -> TurnResult:
    stages = {"ASR": asr, "heard": 1.5}
    return TurnResult(SCENE.lines[0], Path("x.wav"), "answered", "what time", "Noon.", ("clock",), stages, "noon")


def test_programs_get_latencies_violations_and_memory(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    demo = DemoResult([SceneResult(SCENE, 30, [answer(0.25), answer(0.75)])], ["underrun (4.3 D4): 60 ms"])
    write_figures(path, demo, [Check("it works", True, "yes"), Check("all of it", False, "no")], 700_000_000)
    figures = json.loads(path.read_text(encoding="utf-8"))
    assert figures["ok"] is False and figures["checks"][1] == {"what": "all of it", "ok": False, "seen": "no"}
    assert figures["violations"] == ["underrun (4.3 D4): 60 ms"] and figures["memory_bytes"] == 700_000_000
    assert figures["median_ms"] == {"ASR": 500.0, "heard": 1500.0}
    assert figures["answers"][0]["ms"] == {"ASR": 250.0, "heard": 1500.0}
    assert figures["answers"][0]["tools"] == ["clock"] and figures["answers"][0]["language"] == "en"


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot write"):
        write_figures(tmp_path / "missing" / "figures.json", DemoResult([]), [], 0)
