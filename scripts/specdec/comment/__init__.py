"""What a change would do to an environment, as one comment on a pull request."""

from specdec.comment.render import MARKER, render
from specdec.comment.sources import Sources, gather

__all__ = ["MARKER", "Sources", "gather", "render"]
