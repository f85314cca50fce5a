"""A statement that is carried out for many rows."""

from collections.abc import Sequence

from sqlalchemy import Connection
from sqlalchemy.sql.dml import Insert

from controller.database.rows import Row


class Many:
    """Compiled once: SQLAlchemy would go through all columns of each row, a third of a save's CPU time.

    Every row has every column, and its values are what the driver takes.
    """

    def __init__(self, statement: Insert) -> None:
        self._statement = statement
        self._text = ""
        self._names: Sequence[str] | None = None  # in their order, if the driver takes values by their places

    def prepare(self, connection: Connection, names: Sequence[str]) -> None:
        """Compile it for rows with these columns, if it is not: that takes milliseconds, and may be done before."""
        if not self._text:
            compiled = self._statement.compile(dialect=connection.dialect, column_keys=list(names))
            self._text, self._names = str(compiled), compiled.positiontup

    def carry_out(self, connection: Connection, rows: Sequence[Row]) -> None:
        """Insert rows, or whatever the statement does with them."""
        if not rows:
            return
        self.prepare(connection, list(rows[0]))
        names = self._names
        values = list(rows) if names is None else [tuple(row[name] for name in names) for row in rows]
        connection.exec_driver_sql(self._text, values)
