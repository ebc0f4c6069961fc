"""The errors of the domain: every answer that is not a success.

Owns the error types. Only `trunkline.http.calls.errors` knows the status code of each. The message of an error
is part of the API: it names the field, what is wrong with it and what would be right. It never contains a
secret or a payload.
"""

from __future__ import annotations

from typing import Any, ClassVar

from trunkline.limits.window import Verdict


class DomainError(Exception):
    """An error that is reported to the caller.

    `type` is the identifier in the error body, `message` the sentence. If a handler raises one, nothing of its
    turn is stored.
    """

    type: ClassVar[str] = "Internal"
    details: dict[str, Any] | None = None
    """What the log of a job shows of it, in addition to the sentence."""
    is_unknown = False
    """Nobody knows whether the call was done. With all other errors nothing of it was."""
    is_of_data = False
    """What is stored is the reason, so the call may be right with newer data."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Invalid(DomainError):
    """The request is well-formed, but its content is not acceptable (also a duplicate of a unique value)."""

    type = "Validation"
    is_of_data = True


class InvalidParts(Invalid):
    """Many resources of one call are not acceptable; each has its own sentence. Nothing was changed.

    `problems` has `type`, `name`, `id` and `message` of the first ones, `count` is the number of all. The log of a job
    shows the first `logged_max`.
    """

    def __init__(self, message: str, problems: list[dict[str, str]], *, count: int, logged_max: int) -> None:
        super().__init__(message)
        self.problems = problems
        self.details = {"validationErrors": problems[:logged_max], "count": count}


class Unauthorized(DomainError):
    """No token, an invalid, expired or revoked token, or wrong credentials."""

    type = "Unauthorized"
    is_of_data = True


class Forbidden(DomainError):
    """The token is valid, but lacks the scope or has no access to the resource."""

    type = "Forbidden"
    is_of_data = True


class NotFound(DomainError):
    """The addressed record, or a parent of it, does not exist."""

    type = "NotFound"
    is_of_data = True


class Gone(DomainError):
    """The addressed record was valid until a time that has passed."""

    type = "Gone"
    is_of_data = True


class InWork(DomainError):
    """The first call with the same Idempotency-Key is still in work."""

    type = "InWork"


class KeyReused(DomainError):
    """The Idempotency-Key belongs to another call."""

    type = "KeyReused"
    is_of_data = True


class PreconditionFailed(DomainError):
    """The `If-Match` of the request names a revision other than the stored one."""

    type = "PreconditionFailed"
    is_of_data = True


class PayloadTooLarge(DomainError):
    """More bytes, entries or rows than one call may send or request."""

    type = "PayloadTooLarge"


class ChangeTooLarge(PayloadTooLarge):
    """A change that writes more than one turn may. Operations that have a job do it in parts as a job."""


class TooManyRequests(DomainError):
    """A throttle, a gate or a login limit refused the call. It may be repeated after `retry_after_s`."""

    type = "TooManyRequests"

    def __init__(
        self, message: str, *, bucket: str, verdict: Verdict | None = None, retry_after_s: float
    ) -> None:
        super().__init__(message)
        self.bucket = bucket
        self.verdict = verdict
        self.retry_after_s = retry_after_s


class Overloaded(DomainError):
    """A limit of the server itself is reached (a mailbox, a buffer, the journal), or a part of it is just starting.

    Nothing was done.

    `reason` names the limit in one word, for counts.
    """

    type = "Overloaded"

    def __init__(self, message: str, *, retry_after_s: float = 1.0, reason: str = "server") -> None:
        super().__init__(message)
        self.reason = reason
        self.retry_after_s = retry_after_s


class NamesBusy(Overloaded):
    """This process may not claim names now that are unique in the server (`records/names.py`)."""


class StorageFull(DomainError):
    """The disk, or the quota of the data directory, is full: writes are refused, reads still work."""

    type = "StorageFull"


class Crashed(DomainError):
    """A bug or a storage fault ended this call. The actor was restarted; other actors were not affected."""

    type = "Internal"

    def __init__(self, message: str, *, is_unknown: bool = False) -> None:
        super().__init__(message)
        self.is_unknown = is_unknown


class Unanswered(DomainError):
    """The process that owns the data has ended before it answered. Nobody knows whether the call was done."""

    type = "BadGateway"
    is_unknown = True


ERRORS: tuple[type[DomainError], ...] = (
    Invalid,
    Unauthorized,
    Forbidden,
    NotFound,
    Gone,
    InWork,
    KeyReused,
    PreconditionFailed,
    PayloadTooLarge,
    TooManyRequests,
    Overloaded,
    StorageFull,
    Crashed,
)
