"""Finds what control has by the name that people give it."""

from collections.abc import AsyncIterator
from typing import TypeVar

from fleet.client import access, agents, groups, providers
from fleet.client.client import AsyncFleetClient
from fleet.ground.errors import ConfigError
from fleet.ground.terminal import visible
from fleet.wire.control.agents import Agent
from fleet.wire.control.groups import Group
from fleet.wire.control.providers import Provider
from fleet.wire.control.shapes import ListPage
from fleet.wire.control.tokens import Token

One = TypeVar("One", Agent, Provider, Token)


async def find_agent(control: AsyncFleetClient, name: str) -> Agent:
    """Return an agent.

    Raises:
        ConfigError: There is none of this name.
    """
    found = await _first(control.pages(agents.listing()), name)
    if found is None:
        raise _missing("agent", name)
    return found


async def find_provider(control: AsyncFleetClient, name: str) -> Provider:
    """Return a provider.

    Raises:
        ConfigError: There is none of this name.
    """
    found = await _first(control.pages(providers.listing()), name)
    if found is None:
        raise _missing("provider", name)
    return found


async def find_group(control: AsyncFleetClient, name: str) -> Group:
    """Return a group.

    Raises:
        ConfigError: There is none of this name.
    """
    async for page in control.pages(groups.listing()):
        for one in page.items:
            if one.name == name:
                return one
    raise _missing("group", name)


async def find_token(control: AsyncFleetClient, name: str) -> Token | None:
    """Return a token, without its secret, or None if there is none of this name."""
    return await _first(control.pages(access.tokens()), name)


async def _first(pages: AsyncIterator[ListPage[One]], name: str) -> One | None:
    async for page in pages:
        for one in page.items:
            if one.name == name:
                return one
    return None


def _missing(what: str, name: str) -> ConfigError:
    return ConfigError(f"there is no {what} {visible(name)}")
