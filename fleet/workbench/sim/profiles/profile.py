"""Kinds of devices, as data: what is fixed in a build of the firmware on one board (contract 8, 8.1 and 10)."""

from dataclasses import dataclass, field
from typing import Literal

from fleet.ground.errors import ConfigError
from fleet.workbench.sim.profiles.echo_setting import EchoSetting
from fleet.workbench.sim.profiles.timing import Range, Timing
from fleet.workbench.sim.records.audit import Limits

Mode = Literal["auto", "manual", "realtime"]
Drain = Literal["deferred", "blocking", "none"]
Link = Literal["always", "modem", "session"]
Dialect = Literal["stock", "python"]
OpusApplication = Literal["audio", "voip"]


@dataclass(frozen=True, slots=True)
class Profile:
    """One build of the firmware on one board."""

    name: str
    about: str = ""
    board: str = "bread-compact-wifi"
    board_type: str = "wifi"
    chip: str = "esp32s3"
    version: str = "2.4.2"
    language: str = "en-US"
    dialect: Dialect = "stock"
    """`python` speaks as py-xiaozhi does wherever that differs from the firmware."""
    mode: Mode = "auto"
    wake_packets: int = 33
    """Cached packets sent before `detect`; 0 on builds that send neither."""
    wake_interrupts: bool = True
    """A wake word while speaking goes on to listen, not only aborts."""
    wake_lost_when_open: bool = False
    """A wake word in idle is lost while the channel is open, and the detector stays off."""
    mcp: bool = True
    glyph_push: bool | None = True
    """None when the firmware does not know it, and its hello says nothing about it."""
    aec: bool = False
    """The server cancels the echo: played timestamps go back with the captured frames."""
    echo: EchoSetting | None = None
    """The way from the loudspeaker to the microphone; None if the microphone does not hear it."""
    camera: bool = False
    lamp: bool = True
    extra_tools: int = 0
    """Outputs that the board can switch, a tool each: so many that the list needs several pages."""
    frame_ms: int = 60
    application: OpusApplication = "audio"
    fixed_rate: int | None = None
    """Rate of the downlink in Hz, whatever the hello says."""
    sequence_may_repeat: bool = False
    exact_length: bool = True
    smallest_datagram: int = 16
    checks_downlink: bool = True
    """Without it any datagram from anywhere is played."""
    goodbye_without_id: bool = False
    """A goodbye without session id closes the channel too."""
    crashes: bool = False
    """A missing or mistyped member that the firmware dereferences restarts the device."""
    drain: Drain = "deferred"
    """How `listen start` waits for the rest of the answer in auto mode."""
    queue: int = 40
    """Packets that wait to be decoded at most; what comes then is dropped."""
    notify: bool = False
    """Idle, it plays what a `notify` message names (firmware 2.5)."""
    error_codes: bool = False
    """Errors of JSON-RPC have a code and the texts of firmware 2.5; arguments of the wrong type are refused."""
    socket_slots: int = 6
    heap: int | None = None
    """Bytes of the largest message that still fits into memory."""
    body_limit: int | None = 8192
    """Bytes of an HTTP answer that dead-lock the client."""
    link: Link = "always"
    """MQTT is kept up, is kept up as far as a modem does, or is there for a conversation only."""
    rtt: Range | None = None
    """Round trip in seconds that MQTT and UDP take on top, wandering between these two."""
    timing: Timing = field(default_factory=Timing)
    limits: Limits = field(default_factory=Limits)
    ignored: frozenset[str] = frozenset()
    """Rules of the audit that do not apply to this build."""

    @property
    def is_py_xiaozhi(self) -> bool:
        return self.dialect == "python"

    @property
    def cellular(self) -> bool:
        return self.board_type == "ml307"


_ALL = (
    Profile("P1", "ESP32-S3 with wake word: 33 packets and `detect`, the server ends turns"),
    Profile("P1-camera", "P1 with a camera", camera=True),
    Profile("P1-tools", "P1 with so many tools that the list has three pages", extra_tools=38),
    Profile(
        "P2",
        "ESP32-C3 without PSRAM: no wake audio, messages above 6 KB are lost",
        board="xmini-c3",
        chip="esp32c3",
        wake_packets=0,
        heap=6144,
    ),
    Profile("P3", "echo cancelled on the device: realtime, the microphone stays on", mode="realtime"),
    Profile("P4", "echo cancelled by the server: realtime, played timestamps come back", mode="realtime", aec=True),
    Profile("P5", "push-to-talk", mode="manual", wake_packets=0),
    Profile(
        "P6",
        "firmware 2.2.6: crashes on missing members, drops datagrams below 24 bytes, waits in its main loop",
        version="2.2.6",
        glyph_push=None,
        wake_lost_when_open=True,
        sequence_may_repeat=True,
        exact_length=False,
        smallest_datagram=24,
        goodbye_without_id=True,
        crashes=True,
        drain="blocking",
    ),
    Profile(
        "P7",
        "4G modem: round trips of 150-400 ms, comes back to MQTT once after 60 s if idle",
        board="xingzhi-cube-0.96oled-ml307",
        board_type="ml307",
        link="modem",
        rtt=(0.15, 0.4),
        socket_slots=64,
        body_limit=None,
    ),
    Profile(
        "P8",
        "py-xiaozhi: 20 ms frames, MQTT for a conversation only, subscribes, errors with a code",
        chip="x86_64",
        version="2.1.1",
        dialect="python",
        wake_packets=0,
        glyph_push=None,
        frame_ms=20,
        application="voip",
        fixed_rate=24_000,
        checks_downlink=False,
        goodbye_without_id=True,
        drain="none",
        socket_slots=64,
        body_limit=None,
        link="session",
        timing=Timing(warm_up=(0.0, 0.04), dma=0.0, clear=(0.0, 0.0)),
    ),
    Profile(
        "P9",
        "firmware 2.5: a queue of 20 packets, MCP errors with codes, plays notifications while idle",
        version="2.5.0",
        queue=20,
        notify=True,
        error_codes=True,
    ),
)

PROFILES: dict[str, Profile] = {profile.name: profile for profile in _ALL}


def find_profile(name: str) -> Profile:
    """Return a profile by name.

    Raises:
        ConfigError: No profile has this name.
    """
    if name not in PROFILES:
        raise ConfigError(f"no device profile {name!r}; there are {', '.join(PROFILES)}")
    return PROFILES[name]
