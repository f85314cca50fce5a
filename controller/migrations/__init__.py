"""How a database gets its tables: Alembic's scripts, run by ``controller.store`` when it opens a database."""
