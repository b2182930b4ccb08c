"""A worker ends at each step of a turn, and another one goes on: nothing is done, asked or heard twice."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from fleet.adapters.redis.sessions.calls import CallTable
from fleet.adapters.redis.sessions.conversations import Conversations, StoredJournal
from fleet.adapters.redis.shards.inbox import NO_POST, Inboxes
from fleet.adapters.redis.shards.owner import Owner
from fleet.core.ports import LlmEvent, LlmOptions, Message, TextDelta, ToolOffer
from fleet.core.situation import words_of
from fleet.ground.errors import ProviderError, Unavailable
from fleet.wire import edge_messages
from fleet.wire.identity import CredentialKeys
from tests.integration.worker.scene import VOLUME, Scene, asks, says, stand, text, work
from tests.support.mosquitto_server import MosquittoServer

SET = asks("audio_speaker_set_volume", '{"volume":30}')
STORY = ("Once there was a cat. ", "It was red. ", "It slept.")
LIMIT = 240


@dataclass
class Frozen:
    """A place in the code at which the first one who comes by stops for ever."""

    reached: asyncio.Event = field(default_factory=asyncio.Event)

    async def stop(self) -> None:
        if not self.reached.is_set():
            self.reached.set()
            await asyncio.Event().wait()


@pytest.fixture
def freeze(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Frozen]:
    """Freezes before or after a method of a class, where its arguments say so."""

    def at(owner: type, name: str, *, after: bool = False, where: Callable[..., bool] = lambda *_: True) -> Frozen:
        frozen, method = Frozen(), getattr(owner, name)

        async def call(*args: Any, **named: Any) -> Any:
            if where(*args) and not after:
                await frozen.stop()
            answer = await method(*args, **named)
            if where(*args) and after:
                await frozen.stop()
            return answer

        monkeypatch.setattr(owner, name, call)
        return frozen

    return at


@pytest.fixture
async def stage(redis_url: str, own_broker: MosquittoServer, keys: CredentialKeys) -> AsyncIterator[Scene]:
    """A device and an edge; the tests bring the workers, one after the other."""
    async with stand(redis_url, own_broker, keys, tool_seconds=LIMIT) as one:
        yield one


@pytest.fixture
async def impatient(redis_url: str, own_broker: MosquittoServer, keys: CredentialKeys) -> AsyncIterator[Scene]:
    """The same, of workers that do not wait long for a device."""
    async with stand(redis_url, own_broker, keys, tool_seconds=2.0) as one:
        yield one


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a Redis Cluster: the journal, what the edge gets, and the end of the entry are steps of their own."""
    monkeypatch.setattr(Inboxes, "post_all", lambda *_: NO_POST)


@asynccontextmanager
async def first_worker(stage: Scene, *tools: dict[str, Any]) -> AsyncIterator[str]:
    """Run a worker until the end of the block, and end it as it is; yields the session."""
    async with work(stage.resources, stage.broker):
        await stage.reconnect()
        yield await stage.prepare(*tools) if tools else await stage.greet()


async def until(event: asyncio.Event) -> None:
    async with asyncio.timeout(LIMIT):
        await event.wait()


@dataclass
class Heard:
    """What the edge was given of one turn; it leaves out numbers that it has."""

    sentences: dict[int, str] = field(default_factory=dict)
    indexes: list[int] = field(default_factory=list)

    def take(self, command: edge_messages.EdgeCommand) -> None:
        if isinstance(command, edge_messages.SpeakSentenceCommand):
            self.indexes.append(command.index)
            earlier = self.sentences.setdefault(command.index, command.text)
            assert earlier == command.text, "the same number is the same sentence"

    @property
    def texts(self) -> list[str]:
        assert list(self.sentences) == list(range(len(self.sentences)))
        return list(self.sentences.values())


async def hear(
    stage: Scene, turn: str, kind: type[edge_messages.EdgeCommand] = edge_messages.EndAnswerCommand
) -> Heard:
    """Read the edge's inbox until a message of this kind that belongs to the turn."""
    heard = Heard()
    async with asyncio.timeout(LIMIT):
        while True:
            command = await stage.edge.next()
            assert getattr(command, "turn", turn) == turn
            heard.take(command)
            if isinstance(command, kind):
                return heard


async def ended(stage: Scene) -> None:
    """Return when no entry is left that another worker would find."""
    box = stage.resources.store.keys.inbox(stage.resources.store.keys.shard(stage.device.mac))
    async with asyncio.timeout(LIMIT):
        while await stage.resources.store.client.xlen(box):
            await asyncio.sleep(0.01)


def prompts(stage: Scene) -> list[list[tuple[str, str]]]:
    """Return what the model was asked, without the system message and the situation."""
    return [[(one.role, words_of(one.text)) for one in messages[1:]] for messages, _ in stage.llm.asked]


@pytest.mark.usefixtures("apart")
async def test_what_has_an_effect_outside_is_in_the_journal_before(
    stage: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    send, begin, seen = Inboxes.to_edge, CallTable.begin, []

    async def journal() -> StoredJournal:
        known = await stage.resources.conversations.journal(stage.device.mac)
        assert known is not None
        return known

    async def to_edge(self: Inboxes, edge: str, *commands: edge_messages.EdgeCommand) -> None:
        for command in commands:
            if isinstance(command, edge_messages.SpeakSentenceCommand):
                known = await journal()
                seen.append((command.text in " ".join(one.text for one in known.written), known.sentences))
            elif isinstance(command, edge_messages.EndAnswerCommand):
                seen.append((await journal()).state)
        await send(self, edge, *commands)

    async def begin_call(self: CallTable, mac: str, name: str, *rest: Any) -> Any:
        seen.append([f"{(await journal()).turn}:{call.id}" for call in (await journal()).messages[-1].calls] == [name])
        return await begin(self, mac, name, *rest)

    monkeypatch.setattr(Inboxes, "to_edge", to_edge)
    monkeypatch.setattr(CallTable, "begin", begin_call)
    async with first_worker(stage, VOLUME) as session:
        stage.llm.script = [[*says("One moment."), *SET], says(*STORY)]
        turn = await stage.utter(session, "a story")
        await stage.device.answer(await stage.device.hear_request("tools/call"), result=text("true"))
        assert len((await hear(stage, turn)).texts) == 4
    assert seen == [(True, 0), True, (True, 1), (True, 2), (True, 3), "written"]


async def test_before_the_model_is_asked(stage: Scene, freeze: Callable[..., Frozen]) -> None:
    frozen = freeze(Conversations, "context")
    async with first_worker(stage) as session:
        turn = await stage.utter(session, "a story")
        await until(frozen.reached)
    stage.llm.script = [says(*STORY)]
    async with work(stage.resources, stage.broker):
        assert (await hear(stage, turn)).texts == [one.strip() for one in STORY]
        await ended(stage)
    await stage.until_remembered(("user", "a story"), ("assistant", "".join(STORY)))
    assert len(stage.llm.asked) == 1


async def test_while_the_model_has_not_said_a_sentence(stage: Scene) -> None:
    async with first_worker(stage) as session:
        stage.llm.script = [[TextDelta("Once there"), asyncio.Event()], says(*STORY)]
        turn = await stage.utter(session, "a story")
        async with asyncio.timeout(LIMIT):
            while not stage.llm.asked:
                await asyncio.sleep(0.01)
    async with work(stage.resources, stage.broker):
        assert (await hear(stage, turn)).texts == [one.strip() for one in STORY]
    assert prompts(stage) == [[("user", "a story")]] * 2
    assert "<heard>" not in stage.llm.asked[1][0][0].text


async def test_between_the_beginning_of_a_call_and_its_frame(impatient: Scene, freeze: Callable[..., Frozen]) -> None:
    stage = impatient
    frozen = freeze(CallTable, "begin", after=True)
    async with first_worker(stage, VOLUME) as session:
        stage.llm.script = [SET]
        turn = await stage.utter(session, "30")
        await until(frozen.reached)
    stage.llm.script = [says("Perhaps it is 30 now.")]
    async with work(stage.resources, stage.broker):
        assert (await hear(stage, turn)).texts == ["Perhaps it is 30 now."]
        # The device was never told, and no one tells it now: nobody could know.
        await stage.device.say({"type": "listen", "state": "stop", "session_id": "probe"})
        while (message := await stage.device.hear())["type"] != "goodbye":
            assert message.get("payload", {}).get("method") != "tools/call"
    [outcome] = [text for role, text in prompts(stage)[1] if role == "tool"]
    assert outcome.startswith("error: unknown whether it was done")
    assert len(stage.llm.asked) == 2


@pytest.mark.parametrize("answered", ["before", "after"])
async def test_while_a_call_is_unanswered(stage: Scene, answered: str) -> None:
    async with first_worker(stage, VOLUME) as session:
        stage.llm.script = [[*says("One moment."), *SET]]
        turn = await stage.utter(session, "30")
        request = await stage.device.hear_request("tools/call")
    stage.llm.script = [says("It is 30 now.")]
    if answered == "before":
        await stage.device.answer(request, result=text("true"))
    async with work(stage.resources, stage.broker):
        if answered == "after":
            await hear(stage, turn, edge_messages.TurnProgressCommand)
            await stage.device.answer(request, result=text("true"))
        heard = await hear(stage, turn)
        await ended(stage)
    assert heard.texts[-1] == "It is 30 now."
    assert prompts(stage)[1] == [("user", "30"), ("assistant", "One moment."), ("tool", "true")]
    await stage.until_remembered(
        ("user", "30"), ("assistant", "One moment."), ("tool", "true"), ("assistant", "It is 30 now.")
    )


async def test_after_an_answer_that_was_not_journalled(stage: Scene) -> None:
    async with first_worker(stage, VOLUME) as session:
        stage.llm.script = [SET, [asyncio.Event()]]
        turn = await stage.utter(session, "30")
        await stage.device.answer(await stage.device.hear_request("tools/call"), result=text("true"))
        async with asyncio.timeout(LIMIT):
            while len(stage.llm.asked) < 2:
                await asyncio.sleep(0.01)
    stage.llm.script = [says("It is 30 now.")]
    async with work(stage.resources, stage.broker):
        assert (await hear(stage, turn)).texts == ["It is 30 now."]
    assert prompts(stage)[1] == prompts(stage)[2] == [("user", "30"), ("assistant", ""), ("tool", "true")]


def has_sentence(index: int) -> Callable[..., bool]:
    return lambda box, edge, *commands: any(getattr(command, "index", None) == index for command in commands)


def tells_of_red(_: Conversations, owner: Owner, mac: str, journal: StoredJournal, *rest: object) -> bool:
    return STORY[1] in journal.partial


@pytest.mark.parametrize("step", ["not handed over", "handed over", "together"])
@pytest.mark.parametrize("goes_on", [STORY[2:], (*STORY,)], ids=["goes on", "begins anew"])
async def test_after_a_sentence_was_journalled(
    stage: Scene,
    freeze: Callable[..., Frozen],
    request: pytest.FixtureRequest,
    step: str,
    goes_on: tuple[str, ...],
) -> None:
    if step == "together":
        frozen = freeze(Conversations, "record", after=True, where=tells_of_red)
    else:
        request.getfixturevalue("apart")
        frozen = freeze(Inboxes, "to_edge", after=step == "handed over", where=has_sentence(1))
    async with first_worker(stage) as session:
        stage.llm.script = [says(*STORY)]
        turn = await stage.utter(session, "a story")
        await until(frozen.reached)
    stage.llm.script = [says(*goes_on)]
    async with work(stage.resources, stage.broker):
        heard = await hear(stage, turn)
        await ended(stage)
    assert heard.texts == [one.strip() for one in STORY]
    assert heard.indexes == ([0, 1, 2] if step == "not handed over" else [0, 1, 1, 2])
    system = stage.llm.asked[1][0][0].text
    assert "<heard>Once there was a cat. It was red.</heard>" in system
    assert prompts(stage)[1] == [("user", "a story")]
    [(_, asked), (_, answer)] = [(one.role, one.text) for one in await stage.history(2)]
    assert (asked, answer.split()) == ("a story", "".join(STORY).split())


@pytest.mark.usefixtures("apart")
async def test_twice_within_one_answer(stage: Scene, freeze: Callable[..., Frozen]) -> None:
    first = freeze(Inboxes, "to_edge", after=True, where=has_sentence(0))
    async with first_worker(stage) as session:
        stage.llm.script = [says(*STORY)]
        turn = await stage.utter(session, "a story")
        await until(first.reached)
    second = freeze(Inboxes, "to_edge", after=True, where=has_sentence(1))
    stage.llm.script = [says(*STORY[1:])]
    async with work(stage.resources, stage.broker):
        await until(second.reached)
    stage.llm.script = [says(*STORY)]
    async with work(stage.resources, stage.broker):
        heard = await hear(stage, turn)
        await ended(stage)
    assert heard.texts == [one.strip() for one in STORY]
    assert "<heard>Once there was a cat. It was red.</heard>" in stage.llm.asked[2][0][0].text
    assert prompts(stage)[2] == [("user", "a story")]


async def test_before_the_turn_is_remembered(stage: Scene, freeze: Callable[..., Frozen]) -> None:
    frozen = freeze(Conversations, "remember")
    async with first_worker(stage) as session:
        stage.llm.script = [says(*STORY)]
        turn = await stage.utter(session, "a story")
        await until(frozen.reached)
    stage.llm.script = [says("It woke up.")]
    async with work(stage.resources, stage.broker):
        heard = await hear(stage, turn)
        await ended(stage)
    # The last sentence had been heard by nobody yet, so that the model was free to end otherwise.
    assert heard.texts == [*(one.strip() for one in STORY[:2]), "It woke up."]
    await stage.until_remembered(("user", "a story"), ("assistant", "Once there was a cat. It was red. It woke up."))


@pytest.mark.usefixtures("apart")
@pytest.mark.parametrize("point", ["end not told", "end told", "entry left"])
async def test_after_the_turn_was_remembered(stage: Scene, freeze: Callable[..., Frozen], point: str) -> None:
    def tells_the_end(box: Inboxes, edge: str, *commands: edge_messages.EdgeCommand) -> bool:
        return any(isinstance(command, edge_messages.EndAnswerCommand) for command in commands)

    if point == "entry left":
        frozen = freeze(Inboxes, "discard")
    else:
        frozen = freeze(Inboxes, "to_edge", after=point == "end told", where=tells_the_end)
    async with first_worker(stage) as session:
        stage.llm.script = [says(*STORY)]
        turn = await stage.utter(session, "a story")
        await until(frozen.reached)
    async with work(stage.resources, stage.broker):
        heard = await hear(stage, turn)
        if point != "end not told":
            heard = await hear(stage, turn)  # the other worker's
        await ended(stage)
    assert set(heard.sentences.values()) <= {one.strip() for one in STORY}
    assert len(stage.llm.asked) == 1
    await stage.until_remembered(("user", "a story"), ("assistant", "".join(STORY)))


async def test_nothing_is_left_when_the_turn_was_remembered_and_its_end_told_together(
    stage: Scene, freeze: Callable[..., Frozen]
) -> None:
    frozen = freeze(Conversations, "remember", after=True)
    async with first_worker(stage) as session:
        stage.llm.script = [says(*STORY)]
        turn = await stage.utter(session, "a story")
        await until(frozen.reached)
        await ended(stage)
    assert (await hear(stage, turn)).texts == [one.strip() for one in STORY]
    await stage.until_remembered(("user", "a story"), ("assistant", "".join(STORY)))


async def test_an_apology_is_said_once(stage: Scene, freeze: Callable[..., Frozen]) -> None:
    frozen = freeze(Conversations, "remember", after=True)
    async with first_worker(stage) as session:
        stage.llm.script = [[ProviderError("down", retryable=False)]]
        turn = await stage.utter(session, "a story")
        await until(frozen.reached)
    async with work(stage.resources, stage.broker):
        assert (await hear(stage, turn)).texts == ["Sorry, I cannot answer right now."]
        await ended(stage)
    assert len(stage.llm.asked) == 1
    assert await stage.resources.conversations.journal(stage.device.mac) == StoredJournal(
        turn, "written", (Message("user", "a story"),), 0, apology="Sorry, I cannot answer right now."
    )


async def test_an_interruption_that_waited_ends_the_turn_that_another_worker_took_up(stage: Scene) -> None:
    async with first_worker(stage) as session:
        stage.llm.script = [[*says(*STORY[:2]), asyncio.Event()]]
        turn = await stage.utter(session, "a story")
        async with asyncio.timeout(LIMIT):
            while not isinstance(last := await stage.edge.next(), edge_messages.SpeakSentenceCommand) or last.index < 1:
                pass
    await stage.post(
        edge_messages.AnswerInterruptedEvent(device=stage.device.mac, session=session, turn=turn, spoken=1)
    )
    stage.llm.script = [[asyncio.Event()]]
    async with work(stage.resources, stage.broker):
        await ended(stage)
        await stage.until_remembered(("user", "a story"), ("assistant", "Once there was a cat. [the user interrupted]"))


async def answer_the_time(
    messages: Sequence[Message], tools: Sequence[ToolOffer], options: LlmOptions
) -> AsyncGenerator[LlmEvent, None]:
    """Know the time and nothing else, whenever that is asked for."""
    if words_of(messages[-1].text) != "no, the time":
        await asyncio.Event().wait()
    yield TextDelta("It is noon.")


async def test_of_two_turns_that_waited_only_the_newer_one_is_answered(stage: Scene) -> None:
    async with first_worker(stage) as session:
        stage.llm.script = [[*says(*STORY[:2]), asyncio.Event()]]
        await stage.utter(session, "a story")
        async with asyncio.timeout(LIMIT):
            while not isinstance(last := await stage.edge.next(), edge_messages.SpeakSentenceCommand) or last.index < 1:
                pass
    newer = await stage.utter(session, "no, the time")
    stage.llm.stream = answer_the_time  # type: ignore[method-assign]
    async with work(stage.resources, stage.broker):
        async with asyncio.timeout(LIMIT):
            while getattr(await stage.edge.until(edge_messages.SpeakSentenceCommand), "turn", "") != newer:
                pass
        await ended(stage)
    texts = [one.text for one in await stage.history(4)]
    # Nobody knows whether the edge was given the second sentence, unless it was said again before the newer turn came.
    heard = ("Once there was a cat. [the user interrupted]", "Once there was a cat. It was red. [the user interrupted]")
    assert texts[1] in heard
    assert [texts[0], *texts[2:]] == ["a story", "no, the time", "It is noon."]


async def test_while_redis_is_away_for_a_moment_the_same_worker_goes_on(
    stage: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    record, failures = Conversations.record, 1

    async def fail_once(
        self: Conversations, owner: Owner, mac: str, journal: StoredJournal, *post: Any, **rest: bool
    ) -> None:
        nonlocal failures
        if "red" in journal.partial and failures:
            failures -= 1
            raise Unavailable("redis is away")
        await record(self, owner, mac, journal, *post, **rest)

    monkeypatch.setattr(Conversations, "record", fail_once)
    async with first_worker(stage) as session:
        stage.llm.script = [says(*STORY), says(*STORY[1:])]
        turn = await stage.utter(session, "a story")
        heard = await hear(stage, turn)
        await ended(stage)
    assert heard.texts == [one.strip() for one in STORY]
    assert not failures
    assert "<heard>Once there was a cat.</heard>" in stage.llm.asked[1][0][0].text
    await stage.until_remembered(("user", "a story"), ("assistant", "Once there was a cat. It was red. It slept."))
