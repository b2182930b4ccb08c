"""A short run of `scripts/bench echo`: a user speaks over the echo of an answer in a simulated room."""

import asyncio

import pytest

from tests.benchmarks.echo import EchoExperiment

pytestmark = pytest.mark.speech


@pytest.mark.parametrize(("seconds", "commands"), [(9, 2), pytest.param(30, 4, marks=pytest.mark.slow)])
async def test_a_user_is_understood_over_an_echo_as_loud_as_he_is_and_the_answer_does_not_interrupt_itself(
    seconds: float, commands: int
) -> None:
    experiment = EchoExperiment(seconds=seconds, repeats=1, levels=[0.0], commands=commands)
    async with asyncio.timeout(600):
        [found] = await experiment.measure(lambda _: None)
    assert found.self_interruptions == 0
    assert found.understood >= commands // 2, found.missed
