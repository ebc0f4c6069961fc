"""Every answer that is not a success, by the type name that the caller sees.

Owns the vocabulary of refusals; `trunkline.http.calls.errors` alone knows which status code belongs to each.
A refusal is a value of the API like any other: it names the field, what is wrong with it and what would
be right, and it never carries a secret or a payload.
"""

from __future__ import annotations

from typing import ClassVar

from trunkline.limits.window import Verdict


class DomainError(Exception):
    """A refusal that is told to the caller.

    `type` is the identifier in the error body, `message` the sentence. Raising one from a handler means
    that nothing was changed and nothing is stored.
    """

    type: ClassVar[str] = "Internal"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Invalid(DomainError):
    """The request is well-formed, its content is not acceptable (also a duplicate of a unique value)."""

    type = "Validation"


class Unauthorized(DomainError):
    """No token, a token that does not hold (any more), or credentials that are wrong."""

    type = "Unauthorized"


class Forbidden(DomainError):
    """A token that holds, but misses the scope or does not reach the resource."""

    type = "Forbidden"


class NotFound(DomainError):
    """The addressed record, or a parent of it, does not exist."""

    type = "NotFound"


class Conflict(DomainError):
    """The request contradicts the present state of the resource."""

    type = "Conflict"


class PreconditionFailed(DomainError):
    """The `If-Match` of the request names another revision than the stored one."""

    type = "PreconditionFailed"


class PayloadTooLarge(DomainError):
    """More bytes, entries or rows than one call may carry or ask for."""

    type = "PayloadTooLarge"


class TooMuchAtOnce(PayloadTooLarge):
    """A change of more than one turn should write. Where the operation has a job, that does it part by part."""


class TooManyRequests(DomainError):
    """A throttle, a gate or a login limit refused the call. `retry_after_s` says when to come back."""

    type = "TooManyRequests"

    def __init__(
        self, message: str, *, bucket: str, verdict: Verdict | None = None, retry_after_s: float
    ) -> None:
        super().__init__(message)
        self.bucket = bucket
        self.verdict = verdict
        self.retry_after_s = retry_after_s


class Overloaded(DomainError):
    """A bound of the server itself is reached (a mailbox, a buffer, the journal). Nothing was done."""

    type = "Overloaded"

    def __init__(self, message: str, *, retry_after_s: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class StorageFull(DomainError):
    """The disk, or the quota of the data directory, is full: writes are refused, reads go on."""

    type = "StorageFull"


class Crashed(DomainError):
    """A bug or a storage fault ended this one call. The actor was restarted; others were not touched."""

    type = "Internal"


ERRORS: tuple[type[DomainError], ...] = (
    Invalid,
    Unauthorized,
    Forbidden,
    NotFound,
    Conflict,
    PreconditionFailed,
    PayloadTooLarge,
    TooManyRequests,
    Overloaded,
    StorageFull,
    Crashed,
)
