from fleet.core.consent import SECONDS
from fleet.core.ports import ToolCall
from fleet.core.tool_gate import WAITS
from fleet.core.tool_policy import ToolPolicy
from fleet.roles.gateway.turns.consent import ClientConsent, TextConsent

CALL = ToolCall("c1", "open_door", "{}")


async def asked(text: str = "open the door") -> tuple[ClientConsent, str]:
    client = ClientConsent()
    gate = client.begin("s1", text, 0.0).gate(ToolPolicy(otherwise="ask"))
    assert await gate.check(CALL, "open_door", "program", {}) == WAITS
    client.note_sent(10.0)
    return client, gate.question


def confirmed(turn: TextConsent) -> bool:
    return bool(turn.before.messages)


async def test_the_next_text_of_the_session_confirms_once() -> None:
    client, question = await asked()
    assert question == "Should I really do this: open door? Please say yes or no."
    yes = client.begin("s1", "yes", 11.0)
    assert confirmed(yes) and yes.note == ""
    [message] = yes.before.messages
    assert await yes.gate(ToolPolicy(otherwise="ask")).check(message.calls[0], "open_door", "program", {}) == ""
    assert not confirmed(client.begin("s1", "yes", 12.0))


async def test_a_chinese_text_is_asked_in_chinese() -> None:
    _, question = await asked("开门")
    assert question.startswith("真的")


async def test_anything_else_is_a_no() -> None:
    others = [("s1", "no", 11.0), ("s1", "hello", 11.0), ("s2", "yes", 11.0), ("s1", "yes", 9.9)]
    for session, text, at in (*others, ("s1", "yes", 10.1 + SECONDS)):
        client, _ = await asked()
        turn = client.begin(session, text, at)
        assert not confirmed(turn) and "no clear yes" in turn.note, text
        assert not confirmed(client.begin("s1", "yes", 11.0)), text
