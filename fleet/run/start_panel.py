"""What `fleet up` shows when it is ready: where devices and operators go, which models answer, and what is open.

Nothing of it waits: models are asked while fleet runs, and their lines follow when they have answered.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from fleet.adapters.net.own_address import own_address
from fleet.ground.settings import Settings
from fleet.ground.settings.tls import is_loopback
from fleet.ground.tasks import isolate, running
from fleet.run.listeners_table import Listener, table
from fleet.run.start_check import CheckedModel, chat_models, find_fault, photo_models, speech_models

Show = Callable[[str], None]

_KINDS = {
    "LLM": "chat",
    "LLM_FALLBACK": "second chat",
    "VISION": "vision",
    "ASR": "recognition",
    "TTS": "voice",
}
_QUIET = 4
"""Width of the empty margin that a scanner needs, in modules."""
_INK, _PLAIN = "\x1b[30;107m", "\x1b[0m"


class StartPanel:
    """Shows the panel, and the code of the first owner, which may come later.

    Args:
        settings: Of the process, as they were given.
        show: Called with each text.
        demo: Whether the demo model of fleet answers.
        draws: Whether a QR code can be drawn; by default, whether the output is a terminal.
    """

    def __init__(self, settings: Settings, show: Show, *, demo: bool, draws: bool | None = None) -> None:
        self._settings, self._show, self._demo = settings, show, demo
        self._draws = _is_drawable() if draws is None else draws
        self._is_shown, self._code = False, ""

    def offer_code(self, text: str) -> None:
        """Show how somebody becomes the first owner: as a part of the panel, or now if that was shown."""
        if self._is_shown:
            self._show(text)
        self._code = text

    @asynccontextmanager
    async def shown(self, ota: str, console: str, ports: list[Listener]) -> AsyncIterator[None]:
        """Show the panel; during the block, show which models are in use, and whether their endpoints answer.

        Args:
            ota: Address that is entered into devices.
            console: Address for operators; empty if control does not run.
            ports: Of the listening sockets.
        """
        self._is_shown = True
        parts = [f"Enter this address into your devices: {ota}"]
        parts += [qr_code(ota)] if self._draws else []
        parts.append(_operators(console))
        parts += [self._code] if self._code else []
        self._show("\n\n".join([*parts, table(ports)]))

        async def ask() -> None:
            await isolate("models of the panel", self._name_models())

        async with running("models of the panel", ask):
            yield

    async def _name_models(self) -> None:
        own = _own_models(self._settings, demo=self._demo)
        endpoints = [*chat_models(self._settings), *photo_models(self._settings), *speech_models(self._settings)]
        async with asyncio.TaskGroup() as group:
            asked = [
                group.create_task(_line(one), name=f"model {one.prefix}")
                for one in endpoints
                if _KINDS[one.prefix] not in own
            ]
        lines = [*(f"  {kind}: {text}" for kind, text in own.items()), *(one.result() for one in asked)]
        self._show("\n".join(["Models:", *lines]))


def _operators(console: str) -> str:
    """Return where operators go, and how from another machine if only this one reaches it."""
    if not console:
        return "Operators: control does not run, see the log"
    address = urlsplit(console)
    if not is_loopback(address.hostname or ""):
        return f"Operators: {console}"
    tunnel = f"ssh -L {address.port}:127.0.0.1:{address.port} {own_address()}"
    return f"Operators: {console}\n  on another machine, run `{tunnel}` first"


def qr_code(text: str) -> str:
    """Return a QR code as lines of half blocks, dark on light whatever the colours of the terminal."""
    # Imported late: only a terminal needs it.
    import segno

    rows = [list(row) for row in segno.make(text, error="l", micro=False).matrix_iter(border=_QUIET)]
    if len(rows) % 2:
        rows.append([0] * len(rows[0]))
    blocks = {(0, 0): " ", (1, 0): "▀", (0, 1): "▄", (1, 1): "█"}
    drawn = ["".join(blocks[pair] for pair in zip(*rows[at : at + 2], strict=True)) for at in range(0, len(rows), 2)]
    return "\n".join(f"{_INK}{line}{_PLAIN}" for line in drawn)


def _own_models(settings: Settings, *, demo: bool) -> dict[str, str]:
    """Return the models that run in this process, by kind."""
    found = {"chat": "the demo model, which knows a few sentences; set LLM_BASE_URL for a real one"} if demo else {}
    if settings.llm_provider != "openai":
        found["chat"] = f"the plugin {settings.llm_provider}"
    for kind, provider, url in (
        ("recognition", settings.asr_provider, settings.asr_base_url),
        ("voice", settings.tts_provider, settings.tts_base_url),
    ):
        if provider not in (None, "openai", "offline"):
            found[kind] = f"the plugin {provider}"
        elif not url or provider == "offline":
            found[kind] = "offline, on this machine"
    return found


async def _line(model: CheckedModel) -> str:
    clock = asyncio.get_running_loop().time
    begun = clock()
    fault = await find_fault(model)
    name = f"{model.model} at {model.url}" if model.model else model.url
    if fault is None:
        return f"  {_KINDS[model.prefix]}: {name} answers ({clock() - begun:.1f} s)"
    return f"  {_KINDS[model.prefix]}: {name}: {fault.reason}; {fault.remedy}"


def _is_drawable() -> bool:
    return sys.stdout.isatty() and (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
