"""`python -m fleet.workbench.demo`: the command of scripts/demo."""

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
    from fleet.workbench.demo.rollout import RolloutDemo, RolloutOptions
    from fleet.workbench.demo.run import DemoOptions, DemoRun
except ModuleNotFoundError as missing:
    sys.exit(f"the demo needs the package {missing.name}: {install_hint('workbench')}")

EXIT_INTERRUPTED = 130
_FOLDER = Path("out") / "demo"


def demo(  # noqa: PLR0913 - the arguments are the command line
    real: Annotated[
        bool, typer.Option("--real", help="Use Debian's Mosquitto with the plugin, and redis-server.")
    ] = False,
    zh: Annotated[bool, typer.Option("--zh", help="Talk in Chinese only.")] = False,
    en: Annotated[bool, typer.Option("--en", help="Talk in English only.")] = False,
    fleet: Annotated[
        bool, typer.Option("--fleet", help="Show a rollout of firmware over three boards, one image of which is bad.")
    ] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the server running afterwards.")] = False,
    json: Annotated[
        Path | None, typer.Option(help="JSON file for the figures: checks, answers, latencies, violations, memory.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the answers and logs.")] = _FOLDER,
    picture: Annotated[Path | None, typer.Option(hidden=True, help="SVG file for the output.")] = None,
) -> None:
    """Start a server, let a simulated device talk to it with recorded speech, and check the answers."""
    if fleet:
        sys.exit(runtime.run(lambda: _rollout(out)))
    wanted: dict[Language, bool] = {"en": en, "zh": zh}
    languages = [language for language in SCENES if wanted[language]] or list(SCENES)
    options = DemoOptions(languages, real, keep, out, json)
    code = runtime.run(lambda: _demo(options, picture))
    if code not in (0, EXIT_INTERRUPTED):
        typer.echo(f"The logs are in {out}.", err=True)
    sys.exit(code)


async def _rollout(folder: Path) -> int:
    _end_with_terminal()
    shown = RolloutDemo(RolloutOptions(folder), Screen(make_console()))
    await shown.run()
    return 0 if shown.ok else runtime.EXIT_FAILED


async def _demo(options: DemoOptions, picture: Path | None) -> int:
    _end_with_terminal()
    console = make_console(record=picture is not None)
    demo_run = DemoRun(options, Screen(console, spinner=picture is None))
    try:
        await demo_run.run()
    except asyncio.CancelledError:
        # Ctrl-C is the usual end with --keep; otherwise the demo is not complete.
        console.print("stopped")
        if not options.keep:
            return EXIT_INTERRUPTED
    if picture:
        save_picture(console, picture)
    return 0 if demo_run.ok else runtime.EXIT_FAILED


def _end_with_terminal() -> None:
    """Shut down when the terminal is closed, unless nohup ignores SIGHUP; asyncio handles Ctrl-C."""
    task = asyncio.current_task()
    if task and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, task.cancel)


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Do not fail on a terminal that cannot show Chinese characters.
            stream.reconfigure(errors="replace")
    # Help and errors for a pipe have no boxes, and are not wrapped.
    app = typer.Typer(
        rich_markup_mode="rich" if sys.stdout.isatty() else None,
        context_settings={"terminal_width": 10_000},
        add_completion=False,
    )
    app.command()(demo)
    app()
