"""`python -m fleet.workbench.demo`: what scripts/demo runs when everything is installed."""

import asyncio
import io
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from fleet.ground import runtime
from fleet.ground.errors import install_hint
from fleet.workbench.demo.screen import Screen, make_console, save_picture
from fleet.workbench.demo.script import SCENES, Language

try:
    from fleet.workbench.demo.show import Show, Wishes
except ModuleNotFoundError as missing:
    sys.exit(f"the demo needs the package {missing.name}: {install_hint('workbench')}")

EXIT_INTERRUPTED = 130
_FOLDER = Path("out") / "demo"


def demo(
    real: Annotated[
        bool, typer.Option("--real", help="Use Debian's Mosquitto with the plugin, and redis-server.")
    ] = False,
    zh: Annotated[bool, typer.Option("--zh", help="Only in Chinese.")] = False,
    en: Annotated[bool, typer.Option("--en", help="Only in English.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the server running afterwards.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for the answers and logs.")] = _FOLDER,
    picture: Annotated[Path | None, typer.Option(hidden=True, help="SVG file for what is shown.")] = None,
) -> None:
    """Start a server, let a simulated device talk to it in recorded speech, and judge what it answers."""
    wanted: dict[Language, bool] = {"en": en, "zh": zh}
    languages = [language for language in SCENES if wanted[language]] or list(SCENES)
    wishes = Wishes(languages, real, keep, out)
    code = runtime.run(lambda: _demo(wishes, picture))
    if code not in (0, EXIT_INTERRUPTED):
        typer.echo(f"The logs are in {out}.", err=True)
    sys.exit(code)


async def _demo(wishes: Wishes, picture: Path | None) -> int:
    _end_with_terminal()
    console = make_console(record=picture is not None)
    show = Show(wishes, Screen(console, spinner=picture is None))
    try:
        await show.run()
    except asyncio.CancelledError:
        # Ctrl-C: the usual end of --keep, otherwise nothing that may count as a success.
        console.print("stopped")
        if not wishes.keep:
            return EXIT_INTERRUPTED
    if picture:
        save_picture(console, picture)
    return 0 if show.ok else runtime.EXIT_FAILED


def _end_with_terminal() -> None:
    """End in order when the terminal is closed, unless nohup said otherwise; Ctrl-C is seen to already."""
    task = asyncio.current_task()
    if task and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, task.cancel)


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal without Chinese characters must not end the demo.
            stream.reconfigure(errors="replace")
    typer.run(demo)
