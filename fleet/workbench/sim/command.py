"""`fleet sim`: a simulated device at the command line."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from fleet.ground.errors import ConfigError, FleetError
from fleet.ground.terminal import itemised, plural, visible
from fleet.wire.topics import canonical_mac
from fleet.workbench.sim.audio.recording import read_recording
from fleet.workbench.sim.audio.sound_card import LiveVoice, loudspeaker, microphone, sound_system
from fleet.workbench.sim.conversation import Said, Typed
from fleet.workbench.sim.crowd.crowd import CrowdPlan
from fleet.workbench.sim.crowd.run import CrowdRun, run_crowd
from fleet.workbench.sim.crowd.shares import Shares
from fleet.workbench.sim.network import faults
from fleet.workbench.sim.network.https import load_trust
from fleet.workbench.sim.profiles.echo_setting import EchoSetting
from fleet.workbench.sim.profiles.profile import PROFILES, Mode, find_profile
from fleet.workbench.sim.records.journal import Step
from fleet.workbench.sim.records.report import Report
from fleet.workbench.sim.run import DEFAULT_MAC, SimOptions, simulate

EPILOG = "\n\n".join(
    (
        itemised("Kinds of devices (`--profile`):", (f"`{name}`: {one.about}" for name, one in PROFILES.items())),
        f"Faults (`--fault`), shares of 1 or times in seconds: {', '.join(faults.names())}.",
    )
)
"""What the help says below the options."""

Synthesise = Callable[[str], Awaitable[bytes]]
"""Turns text into PCM at 16 kHz."""

_LIVE_TURNS = 1000
_EXIT_MISCONFIGURED = 2

Recordings = Annotated[list[Path] | None, typer.Option(metavar="<path>", help="Recording to say; may be given again.")]
Texts = Annotated[list[str] | None, typer.Option(metavar="<str>", help="Text to say; may be given again.")]
TypedTexts = Annotated[
    list[str] | None,
    typer.Option("--type", metavar="<str>", help="Text to type, after what is said; only P8 has a text box."),
]
Faults = Annotated[
    list[str] | None,
    typer.Option(metavar="<str>", help="What goes wrong, of the faults below, such as loss=0.05; may be given again."),
]
Echo = Annotated[
    float | None, typer.Option(min=-20, max=20, help="The microphone hears the loudspeaker: dB above -26 dBFS.")
]
CrowdSize = Annotated[
    int | None,
    typer.Option(
        "--crowd",
        min=1,
        max=1_000_000,
        help="So many devices without audio instead, until Ctrl-C; they count calls. They have MACs of their own.",
    ),
]
CrowdShares = Annotated[
    list[str] | None,
    typer.Option(
        metavar="<str>",
        help="Part of the crowd, or of its calls, such as offline=0.3; may be given again: "
        + ", ".join(one.name for one in fields(Shares)),
    ),
]
CrowdSeconds = Annotated[float | None, typer.Option(min=0.1, help="How long the crowd is there.")]


def build(synthesise: Synthesise) -> Callable[..., None]:
    """Return the command; `synthesise` is the voice of `--text`."""

    def sim(  # noqa: PLR0913 - the arguments are the command line
        ota: Annotated[str, typer.Option(help="Bootstrap address, http://host:port/…")],
        wav: Recordings = None,
        text: Texts = None,
        typed: TypedTexts = None,
        mic: Annotated[bool, typer.Option("--mic", help="Speak and listen yourself.")] = False,
        mode: Annotated[Mode | None, typer.Option(help="How turns end; the profile's own without it.")] = None,
        profile: Annotated[str, typer.Option(help="Kind of device, of those below.")] = "P1",
        fault: Faults = None,
        seed: Annotated[int | None, typer.Option(help="Makes drawn times and faults repeatable.")] = None,
        reply: Annotated[Path | None, typer.Option(help="WAV file for what the device played.")] = None,
        report: Annotated[Path | None, typer.Option(help="JSON file for the report.")] = None,
        mac: Annotated[str, typer.Option(help="The device's MAC.")] = DEFAULT_MAC,
        echo: Echo = None,
        crowd: CrowdSize = None,
        share: CrowdShares = None,
        rate: Annotated[
            float, typer.Option(min=0.1, max=10_000, help="Devices of the crowd that boot a second.")
        ] = 200,
        seconds: CrowdSeconds = None,
        ca: Annotated[Path | None, typer.Option(help="PEM file of the authorities it trusts, in place of all.")] = None,
    ) -> None:
        """Simulate a stock device, and check all that the server does to it."""
        said = _Said(tuple(wav or ()), tuple(text or ()), tuple(typed or ()), mic)
        try:
            if crowd:
                _refuse_one_device(said, mode, profile, fault, reply, mac, echo, ca)
                plan = CrowdPlan(ota, crowd, rate=rate, shares=Shares.parse(share or ()), seed=seed or 1)
                raise typer.Exit(run_crowd(CrowdRun(plan, seconds, report), typer.echo))
            device = find_profile(profile)
            device = replace(device, mode=mode or device.mode, echo=None if echo is None else EchoSetting(echo))
            options = SimOptions(ota, (), device, _checked(mac), reply=reply, report=report, seed=seed)
            options = replace(options, faults=faults.parse(fault or ()), tls=load_trust(ca))
            found = asyncio.run(_run(options, said, synthesise))
        except ConfigError as error:
            _fail(error, _EXIT_MISCONFIGURED)
        except FleetError as error:
            _fail(error, 1)
        for line in summary(found):
            typer.echo(line)
        raise typer.Exit(0 if found.ok else 1)

    return sim


@dataclass(frozen=True, slots=True)
class _Said:
    wavs: Sequence[Path]
    texts: Sequence[str]
    typed: Sequence[str]
    mic: bool


def _refuse_one_device(said: _Said, *given: object) -> None:
    """Refuse the options of one device, which a crowd does not have.

    Raises:
        ConfigError: One of them is given; the text names it.
    """
    names = ("--mode", "--profile", "--fault", "--reply", "--mac", "--echo", "--ca")
    usual: tuple[object, ...] = (None, [], "P1", DEFAULT_MAC)
    wrong = [name for name, found in zip(names, given, strict=True) if found not in usual]
    words = {"--wav": said.wavs, "--text": said.texts, "--type": said.typed, "--mic": said.mic}
    wrong += [name for name, found in words.items() if found]
    if wrong:
        raise ConfigError(
            f"{wrong[0]} does not go with --crowd: its devices have their own MACs and kinds, and no audio"
        )


async def _run(options: SimOptions, said: _Said, synthesise: Synthesise) -> Report:
    options = replace(options, on_step=show)
    if said.typed and not options.profile.is_py_xiaozhi:
        raise ConfigError("--type goes only with --profile P8: firmware has no text box")
    if said.mic:
        if options.profile.mode == "manual":
            raise ConfigError("--mic does not go with push-to-talk: nobody presses the button")
        with ExitStack() as stack:
            sounds = sound_system()
            voices = [LiveVoice() for _ in range(_LIVE_TURNS)]
            stack.enter_context(microphone(sounds, voices))
            play = stack.enter_context(loudspeaker(sounds))
            return await simulate(replace(options, utterances=voices, on_sound=play))
    utterances: list[Said] = [read_recording(path) for path in said.wavs]
    utterances += [await synthesise(text) for text in said.texts]
    utterances += [Typed(text) for text in said.typed]
    if not utterances:
        raise ConfigError("nothing to say: give --wav, --text, --type or --mic")
    return await simulate(replace(options, utterances=utterances))


def _fail(error: FleetError, code: int) -> NoReturn:
    typer.echo(f"fleet: {error}", err=True)
    raise typer.Exit(code)


def _checked(mac: str) -> str:
    canonical = canonical_mac(mac)
    if canonical is None:
        raise ConfigError(f"{mac!r} is no MAC")
    return canonical


def show(step: Step) -> None:
    """Write a step as a line for a person."""
    detail = " ".join(f"{key}={value}" for key, value in step.detail.items())
    typer.echo(f"{step.at:8.3f}  {step.name:16} {detail}".rstrip())
    if step.name == "activation code":
        typer.echo(f"{'':8}  the device waits: run `fleet devices bind {visible(str(step.detail['code']))}`")


def summary(report: Report) -> list[str]:
    """Return what a person wants to know of a report."""
    lines = []
    for turn in report.turns:
        lines.append(f"turn {turn.index}: {turn.outcome}; heard {turn.transcript!r}, answered {turn.reply!r}")
        if turn.latencies_ms:
            lines.append("  ms after speech: " + ", ".join(f"{k} {v:.0f}" for k, v in turn.latencies_ms.items()))
        if turn.gaps_ms:
            lines.append(
                f"  {plural(len(turn.gaps_ms), 'gap')} inside sentences, {sum(turn.gaps_ms):.0f} ms in all, "
                f"the longest {max(turn.gaps_ms):.0f} ms"
            )
    broken = [f"VIOLATION at {one.at:.3f} of {one.rule} ({one.clause}): {one.detail}" for one in report.violations]
    excused = [f"excused {count} of {rule}: the fault's doing" for rule, count in report.excused.items()]
    return [*lines, *broken, *excused, "ok" if report.ok else "NOT ok"]
