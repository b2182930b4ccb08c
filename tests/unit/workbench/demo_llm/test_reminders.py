"""Timers and reminders that are wished of the demo model."""

import json
from types import SimpleNamespace

import pytest

from fleet.adapters.tools.reminders import ReminderTools
from fleet.core.schemas.arguments import fit
from fleet.workbench.demo_llm.schemas import Scalar, understand
from tests.support.demo_tools import now, talk, tools_named

REAL = [one.offer for one in ReminderTools(SimpleNamespace(), now).tools()]
TOOLS = (
    *tools_named("stock"),
    *(understand(one.name, one.description, json.dumps(dict(one.parameters))) for one in REAL),
)


@pytest.mark.parametrize(
    ("said", "arguments", "answer"),
    [
        (
            "Remind me in ten seconds to take the pizza out.",
            {"text": "Take the pizza out.", "in_seconds": 10},
            "Okay, I will remind you in 10 seconds.",
        ),
        (
            "remind me to call Anna at half past seven pm tomorrow",
            {"text": "Call Anna.", "time": "19:30", "date": "tomorrow"},
            "Okay, I will remind you at 19:30.",
        ),
        (
            "please remind me every day at 8 am to water the flowers",
            {"text": "Water the flowers.", "time": "08:00", "daily": True},
            "Okay, I will remind you at 08:00.",
        ),
        (
            "set a timer for one minute",
            {"text": "Your time is up.", "in_seconds": 60},
            "Okay, I will remind you in 1 minute.",
        ),
        ("十秒后提醒我关火", {"text": "关火。", "in_seconds": 10}, "好的，10秒后提醒你。"),
        ("提醒我十分钟后关火", {"text": "关火。", "in_seconds": 600}, "好的，10分钟后提醒你。"),
        (
            "明天早上七点半叫我起床",
            {"text": "时间到了。", "time": "07:30", "date": "tomorrow"},
            "好的，我会在07:30提醒你。",
        ),
        (
            "Remind me in ten seconds to buy 豆浆.",
            {"text": "Buy 豆浆.", "in_seconds": 10},
            "Okay, I will remind you in 10 seconds.",
        ),
        ("十秒后提醒我call Anna", {"text": "Call Anna。", "in_seconds": 10}, "好的，10秒后提醒你。"),
        ("设置一个两小时的倒计时", {"text": "时间到了。", "in_seconds": 7_200}, "好的，2小时后提醒你。"),
    ],
)
def test_a_reminder_is_set_and_told(said: str, arguments: dict[str, Scalar], answer: str) -> None:
    calls, told = talk(said, TOOLS, answers={"set_reminder": '{"set": {"id": "r1"}}'})
    assert calls == [("set_reminder", arguments)]
    assert fit(REAL[0].parameters, dict(arguments)) == arguments, "the tool takes them"
    assert told == answer


def test_a_failure_is_told() -> None:
    full = "error: not done, this device has 20 reminders"
    calls, told = talk("remind me in 5 minutes to go", TOOLS, answers={"set_reminder": full})
    assert len(calls) == 1 and "this device has 20 reminders" in told
    told = talk("remind me in 5 minutes to buy 豆浆", TOOLS, answers={"set_reminder": full})[1]
    assert told.startswith("I could not")


def test_what_is_no_wish_is_none_and_without_the_tool_nothing_is_set() -> None:
    for said, tools in (
        ("set the volume to 30", TOOLS),
        ("remind me of my mother", TOOLS),
        ("remind me in ten seconds to go", tools_named("stock")),
    ):
        assert "set_reminder" not in [name for name, _ in talk(said, tools)[0]]
