"""Migrations, on both kinds of database."""

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, text

from fleet.adapters.sql import account_schema, alert_schema, desired_schema, image_schema, job_schema
from fleet.adapters.sql.agent_rows import AgentRows
from fleet.adapters.sql.database import Database, database_url
from fleet.adapters.sql.group_rows import GroupRows
from fleet.adapters.sql.migrate import newest, revision, upgrade
from fleet.adapters.sql.provider_rows import ProviderRows
from fleet.adapters.sql.schema import METADATA
from fleet.adapters.sql.token_rows import TokenRows
from fleet.ground.errors import ConfigError

DECLARED = tuple(one.METADATA for one in (account_schema, alert_schema, desired_schema, image_schema, job_schema))
"""Importing them declares all tables."""


async def test_the_migrations_make_the_tables_of_the_schema(database: Database) -> None:
    def differences(connection: Connection) -> list[object]:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "include_object": _is_ours})
        return list(compare_metadata(context, METADATA))

    async with database.reading() as connection:
        assert await connection.run_sync(differences) == []


def _is_ours(_: object, name: str | None, kind: str, *rest: object) -> bool:
    # The index of letters is of a kind that the metadata cannot state.
    return not (name or "").startswith("device_search")


async def test_a_second_upgrade_changes_nothing(database: Database) -> None:
    assert await revision(database) == newest()
    assert await upgrade(database) == newest()


async def test_no_number_is_given_twice(database: Database) -> None:
    tokens, groups = TokenRows(database), GroupRows(database, 1)
    agents, providers = AgentRows(database, 1), ProviderRows(database, 1)
    endpoint = {"kind": "chat", "adapter": "openai", "voices": []}
    for number in range(3):
        name = f"n{number}"
        token = await tokens.add(1, name, name, [], 1)
        group = await groups.add(name, "", "")
        agent = await agents.add(name, "", {}, 1)
        provider = await providers.add(name=name, **endpoint)
        assert [one.id for one in (token, group, agent, provider)] == [number + 1] * 4
        if number == 0:
            continue
        assert await tokens.remove(1, token.id)
        assert await groups.remove(group.id)
        assert await agents.remove(agent.id, None)
        assert await providers.remove(provider.id, None)


async def test_tables_of_a_newer_version_are_refused(database: Database) -> None:
    async with database.writing() as connection:
        await connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(ConfigError, match="newer fleet"):
        await upgrade(database)


async def test_a_database_without_tables_has_no_revision(database_text: str) -> None:
    database = Database(database_url(database_text))
    assert await revision(database) is None
    await database.close()
