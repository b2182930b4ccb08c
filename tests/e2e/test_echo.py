"""A short run of `scripts/bench echo`: a user speaks over the echo of an answer in a simulated room."""

import asyncio

import pytest

from tests.benchmarks.echo import EchoExperiment

pytestmark = pytest.mark.speech


async def test_a_user_is_understood_over_an_echo_as_loud_as_he_is_and_the_answer_does_not_interrupt_itself() -> None:
    async with asyncio.timeout(600):
        [found] = await EchoExperiment(seconds=30, repeats=1, levels=[0.0], commands=4).measure(lambda _: None)
    assert found.self_interruptions == 0
    assert found.understood >= 2, found.missed
