"""From the former version's images and compose file to this one's and back, on the same volumes, while devices talk."""

import asyncio
import os
import shutil
from functools import partial
from pathlib import Path

import pytest

from tests.chaos.house import Moment
from tests.chaos.monkey import Monkey
from tests.chaos.report import describe
from tests.chaos.run import Options, run
from tests.containers.figures import report
from tests.containers.members import containers
from tests.containers.site import Site, site
from tests.support.compose import DEPLOY
from tests.support.ports import free_port

TURNS = 60
FORMER = os.environ.get("CONTAINER_FORMER_SOURCE", "")

pytestmark = pytest.mark.skipif(
    not FORMER, reason="scripts/test --docker runs it, in a clone that has the former version"
)


class Checkout:
    """The folder `deploy` of an operator, who checks one version out over the other."""

    def __init__(self, folder: Path) -> None:
        self._deploy = folder / "deploy"

    def take(self, source: Path) -> Path:
        """Replace it by another version's; return the compose file."""
        if self._deploy.exists():
            shutil.rmtree(self._deploy)
        shutil.copytree(source, self._deploy)
        return self._deploy / "compose.yaml"


def replacing(fleet: Site, checkout: Checkout, *versions: Path) -> type[Monkey]:
    """Return what replaces everything by one version after the other, in place of single faults."""

    def replace(source: Path) -> None:
        fleet.up(file=checkout.take(source))

    class Replacement(Monkey):
        async def run(self) -> None:
            for number, source in enumerate(versions, start=1):
                await self._house.changed.until(partial(self._reached, number * TURNS // (len(versions) + 1)))
                moment = Moment(f"replacement {number}", f"replacement {number}", self._house.now())
                self._house.faults.append(moment)
                self._house.changed.notify()
                await asyncio.to_thread(replace, source)
                moment.ended = self._house.now()
                self.struck += 1
                self._house.changed.notify()

    return Replacement


async def test_conversations_go_on_over_an_upgrade_and_back(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path)
    former = Path(FORMER) / "deploy"
    with site(tmp_path / "site", "fleet-upgrade") as fleet:
        models = (fleet.host, free_port())
        url = f"http://{models[0]}:{models[1]}/v1"
        fleet.use_models(url, url)
        fleet.up(file=checkout.take(former))
        outcome = await run(
            # The former version ends an utterance in a pause, and may act while the user talks on.
            Options(out=tmp_path, turns=TURNS, devices=4, hesitates=0.0, models=models),
            make=lambda out, _: containers(fleet, out),
            plan=[],
            strike=replacing(fleet, checkout, DEPLOY, former),
        )
        report(outcome)
    assert not outcome.violations, describe(outcome)
