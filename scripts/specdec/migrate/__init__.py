"""Another deployment's engine arguments, of any version, as values of the chart."""

from specdec.migrate.migration import Migration, migrate
from specdec.migrate.sources import Engine, read

__all__ = ["Engine", "Migration", "migrate", "read"]
