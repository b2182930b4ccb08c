import json
import random

from fleet.workbench.sim.messages import outbound
from fleet.workbench.sim.network import malformed
from fleet.workbench.sim.tools import mcp_server


def test_junk_is_of_many_kinds() -> None:
    chance = random.Random(1)
    assert len({malformed.junk(chance) for _ in range(500)}) > 6


def test_the_texts_break_what_they_are_put_into() -> None:
    for broken in (
        outbound.detect("s", malformed.BAD_WAKE_TEXT),
        mcp_server.error(1, malformed.BAD_ERROR),
    ):
        try:
            json.loads(broken)
        except ValueError:
            continue
        raise AssertionError(broken)


def test_the_name_of_the_wifi_is_no_utf8() -> None:
    assert b"\xe9" in malformed.BAD_SSID.encode("utf-8", "surrogateescape")
