"""What `fleet up` shows when it is ready."""

import asyncio
from typing import Any

import pytest

from fleet.ground.settings import Settings
from fleet.run import start_panel
from fleet.run.listeners_table import listeners
from fleet.run.start_check import CheckedModel, ModelFault
from fleet.run.start_panel import StartPanel, qr_code

OTA, CONSOLE, CODE = "http://192.0.2.1:8000/xiaozhi/ota/", "http://127.0.0.1:8003/", "enter this code: ABCD"


async def panel_of(settings: Settings, **more: Any) -> list[str]:
    """Return what a panel shows until its models have answered."""
    models, texts = asyncio.Event(), list[str]()

    def show(text: str) -> None:
        texts.append(text)
        if text.startswith("Models:"):
            models.set()

    panel = StartPanel(settings, show, demo=True, draws=more.get("draws", False))
    if more.get("code"):
        panel.offer_code(CODE)
        assert texts == [], "it is a part of the panel"
    async with panel.shown(OTA, more.get("console", CONSOLE), listeners(settings)):
        if more.get("late"):
            panel.offer_code(CODE)
        await models.wait()
    return texts


async def test_the_panel_says_where_devices_and_operators_go_and_what_is_open() -> None:
    text, models = await panel_of(Settings(activation="open"), code=True)
    for part in (OTA, CONSOLE, CODE, "nothing: open (FLEET_ACTIVATION=open)"):
        assert part in text
    assert text.isascii(), "a log of a service manager gets no picture"
    assert "chat: the demo model" in models and "voice: offline" in models


async def test_the_panel_says_how_another_machine_reaches_a_console_that_only_this_one_does() -> None:
    near, _ = await panel_of(Settings())
    assert "ssh -L 8003:127.0.0.1:8003 " in near
    far, _ = await panel_of(Settings(), console="https://192.0.2.1:8003/")
    assert "https://192.0.2.1:8003/" in far and "ssh" not in far


async def test_a_code_that_comes_after_the_panel_is_shown_then() -> None:
    text, code, _ = await panel_of(Settings(), console="", late=True)
    assert "control does not run" in text
    assert code == CODE


async def test_a_terminal_gets_the_address_as_a_qr_code() -> None:
    text, _ = await panel_of(Settings(), draws=True)
    assert qr_code(OTA) in text
    rows = [line.removeprefix("\x1b[30;107m").removesuffix("\x1b[0m") for line in qr_code(OTA).splitlines()]
    assert len({len(row) for row in rows}) == 1 and 2 * len(rows) - len(rows[0]) in (0, 1), "it is a square"
    assert set(rows[0] + rows[1]) == {" "}, "the margin"
    assert rows[2][4:11] == "█▀▀▀▀▀█", "the first finder pattern"


async def test_models_are_named_with_what_they_answer_and_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, answered = asyncio.Event(), asyncio.Event()

    async def find_fault(model: CheckedModel) -> ModelFault | None:
        asked.set()
        await answered.wait()
        return (
            ModelFault("the endpoint refused the key", "correct TTS_API_KEY", True) if model.prefix == "TTS" else None
        )

    monkeypatch.setattr(start_panel, "find_fault", find_fault)
    done, shown = asyncio.Event(), list[str]()

    def show(text: str) -> None:
        shown.append(text)
        done.set()

    settings = Settings(
        llm_base_url="http://llm.example/v1", llm_model="big", tts_base_url="http://tts.example/v1", tts_model="loud"
    )
    async with StartPanel(settings, show, demo=False, draws=False).shown(OTA, CONSOLE, []):
        await asked.wait()
        assert len(shown) == 1, "the panel does not wait for them"
        done.clear()
        answered.set()
        await done.wait()
    assert "recognition: offline" in shown[1]
    assert "chat: big at http://llm.example/v1 answers (0.0 s)" in shown[1]
    assert "voice: loud at http://tts.example/v1: the endpoint refused the key; correct TTS_API_KEY" in shown[1]
