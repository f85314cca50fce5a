"""Backups of a database on SQLite."""

import pytest

from controller.tests.backup_contract import BackupContract


class TestSqliteBackup(BackupContract):
    """The contract, on a file."""

    @pytest.fixture
    def url(self, tmp_path) -> str:
        """The file's URL."""
        return f"sqlite:///{tmp_path}/headway.db"
