"""The one kind of error that a user sees: what is wrong, where, and what would be right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SpecdecError(Exception):
    """Bad input or a failed precondition. The command prints it without a traceback and exits with `exit_code`.

    code     stable identifier, e.g. "SD310" for a rule or "unknown-environment" for an input error
    message  what is wrong, with the values that show it
    file     the file that holds the value, where there is one
    path     the key in that file, dotted: "speculative.numTokens"
    fix      what would be right
    """

    exit_code = 2

    def __init__(
        self,
        message: str,
        *,
        code: str = "bad-input",
        file: str | None = None,
        path: str | None = None,
        fix: str | None = None,
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.file, self.path, self.fix = code, message, file, path, fix

    def as_dict(self) -> dict[str, str | None]:
        return {"code": self.code, "file": self.file, "path": self.path, "message": self.message, "fix": self.fix}

    def __str__(self) -> str:
        where = ": ".join(part for part in (self.file, self.path) if part)
        return f"{where}: {self.message}" if where else self.message


class FoundWrong(SpecdecError):
    """The input was good and the answer is no: the deployment failed, the smoke test failed."""

    exit_code = 1


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known name that `word` was most likely meant to be, or None."""
    matches = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return matches[0] if matches else None


def unknown(kind: str, word: str, known: Iterable[str], **where: str | None) -> SpecdecError:
    """An error for a name that does not exist, with the nearest that does."""
    names = sorted(known)
    guess = nearest(word, names)
    fix = f"did you mean {guess}?" if guess else f"known: {', '.join(names)}"
    return SpecdecError(f"unknown {kind} {word!r}", code=f"unknown-{kind.replace(' ', '-')}", fix=fix, **where)
