"""The command line, against a server that answers every utterance."""

import asyncio
import itertools
import json
import threading
import wave
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from fleet.adapters.speech.pcm import write_wav
from fleet.workbench.sim import command
from fleet.workbench.sim.audio import sound_card
from fleet.workbench.sim.profiles.profile import PROFILES
from fleet.workbench.sim.records.journal import Step
from tests.support.scripted_server import ScriptedServer, tone
from tests.support.sim_stage import patient

IDS = itertools.count(1)


class AnsweringServer:
    """Answers one conversation, in a thread of its own because the command has an event loop of its own."""

    def __init__(self, *, flawed: bool) -> None:
        self._flawed = flawed
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self.ready = threading.Event()
        self.ota_url = ""

    def start(self) -> None:
        self._thread.start()
        assert self.ready.wait(240)

    async def _serve(self) -> None:
        async with asyncio.timeout(240), ScriptedServer.running() as server:
            self.ota_url = server.ota_url
            self.ready.set()
            await server.expect(type="hello")
            server.welcome()
            await server.expect(type="listen", state="start")
            await server.expect_speech(after=33)
            server.send(type="stt", session_id=server.session, text="hello")
            if self._flawed:
                server.send(type="tts", session_id=server.session)
            server.send(type="tts", session_id=server.session, state="start")
            await _handled(server)
            await server.speak(5)
            await _handled(server)
            server.send(type="tts", session_id=server.session, state="stop")
            await server.expect(type="goodbye")


async def _handled(server: ScriptedServer) -> None:
    """Wait until the device, which has another loop, has worked off what came before and what followed from that."""
    for _ in range(2):
        server.send(type="mcp", payload={"jsonrpc": "2.0", "id": next(IDS), "method": "tools/list", "params": {}})
        await server.expect(type="mcp")


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> Iterator[typer.Typer]:
    monkeypatch.setitem(PROFILES, "P1", patient(PROFILES["P1"]))

    async def synthesise(text: str) -> bytes:
        assert text == "hello"
        return tone(0.3, 16_000)

    app = typer.Typer()
    app.command()(command.build(synthesise))
    yield app


def _run(app: typer.Typer, *arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, result.output


def test_an_answered_recording_ends_with_success_and_writes_reply_and_report(app: typer.Typer, tmp_path: Path) -> None:
    server = AnsweringServer(flawed=False)
    server.start()
    (tmp_path / "say.wav").write_bytes(write_wav(tone(0.3, 16_000), 16_000))
    reply, report = tmp_path / "reply.wav", tmp_path / "report.json"
    files = ["--wav", str(tmp_path / "say.wav"), "--reply", str(reply), "--report", str(report)]
    code, output = _run(app, "--ota", server.ota_url, *files)
    assert code == 0, output
    assert "answered" in output
    with wave.open(str(reply)) as file:
        assert file.getnframes() >= 0.3 * 24_000
    written = json.loads(report.read_text())
    assert written["ok"] is True
    assert written["turns"][0]["transcript"] == "hello"
    assert written["turns"][0]["latencies_ms"]["first_audible"] > 0
    assert written["tools"]["volume"] == 70
    assert [step["at"] for step in written["steps"]] == sorted(step["at"] for step in written["steps"])


def test_a_breach_of_the_contract_fails_although_the_answer_came(app: typer.Typer) -> None:
    server = AnsweringServer(flawed=True)
    server.start()
    code, output = _run(app, "--ota", server.ota_url, "--text", "hello")
    assert code == 1
    assert "answered" in output
    assert "VIOLATION" in output
    assert "field-missing" in output


def test_without_a_sound_card_one_line_says_what_is_missing(app: typer.Typer, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> None:
        raise OSError("PortAudio library not found")

    monkeypatch.setattr(sound_card.importlib, "import_module", missing)
    code, output = _run(app, "--ota", "http://127.0.0.1:1/ota/", "--mic")
    assert code == 1
    assert "apt install libportaudio2" in output and len(output.splitlines()) == 1


def test_a_code_is_shown_with_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    command.show(Step(1.5, "activation code", {"code": "123456"}))
    assert "run `fleet devices bind 123456`" in capsys.readouterr().out


def test_a_server_that_is_away_fails_with_the_reason(app: typer.Typer) -> None:
    code, output = _run(app, "--ota", "http://127.0.0.1:1/ota/", "--text", "hello")
    assert code == 1
    assert "bootstrap at http://127.0.0.1:1/ota/ failed" in output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "nothing to say"),
        (["--mac", "nonsense", "--text", "hello"], "no MAC"),
        (["--profile", "P99"], "no device profile"),
        (["--wav", "/nowhere.wav"], "/nowhere.wav"),
        (["--mic", "--mode", "manual"], "push-to-talk"),
        (["--type", "hello"], "no text box"),
    ],
)
def test_a_command_that_makes_no_sense_is_told_with_exit_code_2(
    app: typer.Typer, arguments: list[str], told: str
) -> None:
    code, output = _run(app, "--ota", "http://127.0.0.1:1/", *arguments)
    assert code == 2
    assert told in output
