import io
import json
import logging

from fleet import log


def lines(**options: object) -> list[str]:
    stream, root = io.StringIO(), logging.getLogger()
    handlers, level = root.handlers[:], root.level
    log.configure("info", options.get("form", "json"), pii=bool(options.get("pii")), stream=stream)  # type: ignore[arg-type]
    logger = logging.getLogger("a.logger")
    with log.fields(device="aa", session="s"):
        logger.info("turn begins", extra={"turn": "t", "pii": {"text": "你好"}})
    logger.debug("too fine")
    logger.info("outside")
    root.handlers[:], root.level = handlers, level
    return stream.getvalue().splitlines()


def test_json_lines_carry_the_fields_of_their_context() -> None:
    inside, outside = map(json.loads, lines())
    assert (inside["message"], inside["device"], inside["session"], inside["turn"]) == ("turn begins", "aa", "s", "t")
    assert "device" not in outside


def test_what_people_say_is_left_out_unless_it_is_wanted() -> None:
    assert "你好" not in "".join(lines())
    assert "你好" in "".join(lines(pii=True))
    assert "你好" not in "".join(lines(form="console"))


def test_console_lines_are_for_people() -> None:
    assert "turn begins" in lines(form="console")[0]
    assert "turn=t" in lines(form="console")[0]
