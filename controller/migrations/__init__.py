"""How a database gets its tables: Alembic's scripts, run by ``controller.database`` when it opens a database."""
