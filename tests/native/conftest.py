"""The database that runs read from and write to."""

from tests.postgresql import postgresql_server

__all__ = ["postgresql_server"]
