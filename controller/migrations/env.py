"""What Alembic runs: on the connection of ``controller.database``, which has the transaction and the lock."""

from alembic import context


def migrate() -> None:
    """Carry out the steps that are due."""
    settings = context.config.attributes
    context.configure(connection=settings["connection"], version_table=settings["version_table"])
    with context.begin_transaction():
        context.run_migrations()


migrate()
