"""Another deployment's engine arguments, of any version, as values of the chart."""

from specdec.migrate.migration import Migration
from specdec.migrate.sources import Engine, read
from specdec.migrate.target import known_version, source_version
from specdec.migrate.values import migrate

__all__ = ["Engine", "Migration", "known_version", "migrate", "read", "source_version"]
