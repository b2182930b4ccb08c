"""What changed the tables, one file a step, in the order of their numbers; run by alembic."""
