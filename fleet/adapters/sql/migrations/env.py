"""Run by alembic for each command: it names the connection that `fleet.adapters.sql.migrate` opened."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], render_as_batch=False)
context.run_migrations()
