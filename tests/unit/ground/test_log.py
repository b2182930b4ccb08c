import io
import json
import logging

from fleet.ground import log


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


def test_one_device_is_looked_at_closely_while_the_others_are_not() -> None:
    stream, root, ours = io.StringIO(), logging.getLogger(), logging.getLogger("fleet.a.part")
    handlers, level = root.handlers[:], root.level
    log.configure("info", "json", pii=False, stream=stream)

    def tell(about: str) -> None:
        with log.fields(device=about):
            ours.debug("by its context")
            ours.info("an ordinary line")
        ours.debug("by its own field", extra={"device": about})
        logging.getLogger("a.library").debug("not ours", extra={"device": about})

    try:
        tell("aa")
        log.watch_devices(frozenset({"aa"}))
        tell("aa")
        tell("bb")
        log.watch_devices(frozenset())
        tell("aa")
        assert not ours.isEnabledFor(logging.DEBUG), "the lines of all others cost nothing again"
    finally:
        log.watch_devices(frozenset())
        root.handlers[:], root.level = handlers, level
    told = [(line["device"], line["message"]) for line in map(json.loads, stream.getvalue().splitlines())]
    assert told == [
        ("aa", "an ordinary line"),
        ("aa", "by its context"),
        ("aa", "an ordinary line"),
        ("aa", "by its own field"),
        ("bb", "an ordinary line"),
        ("aa", "an ordinary line"),
    ]
