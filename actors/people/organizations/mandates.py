"""What authors may do now, in whose name something acts that was stored before.

A workflow, a job or a dashboard acts when its author is not there. It has no rights of its own: each time it acts, the
rights of the author are asked for, as a call of the author would be. They are kept until a record changes that they
depend on (`core/runtime/revocations.py`), so asking costs two look-ups. Rights that have ended are not kept: whether
they are back is found out each time.

Owns the rights that are kept. Does not own how they are found out (`actors/access/author_rights.py`), nor which author
stands for what (`core/records/mandate.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from trunkline.actors.core.records.mandate import Mandate, Mandates
from trunkline.actors.core.runtime.revocations import Bearer
from trunkline.actors.core.values.errors import DomainError, Forbidden, Overloaded, Unauthorized
from trunkline.actors.people.accounts.scopes import scopes_of
from trunkline.actors.people.organizations.roles import ROLES, Level, level_of

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.host import Host
    from trunkline.store.snapshot import Snapshot

KEPT_MAX: Final = 10_000
"""Rights that are kept, each for one author in one application. Beyond that, the oldest are found out again."""


class Rights(Bearer):
    """What an author may do in one application, until it is `revoked`."""

    __slots__ = ("_refusals", "expires_ms", "level", "scopes")

    def __init__(self, level: Level, scopes: frozenset[str], expires_ms: int | None) -> None:
        super().__init__()
        self.level = level
        self.scopes = scopes
        self.expires_ms = expires_ms
        self._refusals: dict[str, str | None] = {}

    def refusal(self, operation: str, access: str) -> str | None:
        """Why an operation is not allowed; None if it is."""
        if operation not in self._refusals:
            self._refusals[operation] = self._judged(operation, access)
        return self._refusals[operation]

    def _judged(self, operation: str, access: str) -> str | None:
        needed = level_of(operation, access)
        if self.level < needed:
            roles = ", ".join(role for role, highest in ROLES.items() if highest >= needed)
            return f"{operation or 'it'} needs one of the roles {roles}"
        if operation and self.scopes.isdisjoint(scopes_of(operation, access)):
            return f"the token that was used has no scope for {operation}"
        return None


NO_OPERATION: Final = ""
"""Changes that no operation makes: whoever may change an application may make them."""

Judge = Callable[["Snapshot", Mandate, bytes], Rights]
"""Finds out what an author may do in an application (or an organization). Raises `DomainError` if that is nothing."""


class Authors:
    """The rights of authors. A component of the system."""

    def __init__(self, system: Host, judge: Judge) -> None:
        self._system = system
        self._judge = judge
        self._kept: dict[tuple[bytes, Mandate], Rights] = {}
        system.forgotten.append(self._forget)

    def rights(self, place: bytes, mandate: Mandate) -> Rights:
        """What an author may do in an application or an organization now. Raises `DomainError` if that is nothing."""
        key = (place, mandate)
        rights = self._kept.get(key)
        if rights is None or rights.revoked:
            if rights is not None:
                self._drop(key)
            with self._system.store.snapshot() as snapshot:
                rights = self._judge(snapshot, mandate, place)
            if len(self._kept) >= KEPT_MAX:
                self._drop(next(iter(self._kept)))
            self._kept[key] = rights
            self._system.revocations.hold(rights)
        if rights.expires_ms is not None and self._system.clock.wall_ms() >= rights.expires_ms:
            raise Unauthorized("The token that was used has expired.")
        return rights

    def check(self, application: bytes, mandates: Mandates, operation: str, access: str) -> None:
        """Raise `Forbidden` unless each of the authors may perform an operation in an application."""
        for mandate in mandates:
            try:
                refusal = self.rights(application, mandate).refusal(operation, access)
            except Overloaded:
                raise  # nobody can say just now
            except DomainError as gone:
                raise Forbidden(f"{_author(mandate)} may do nothing here any more: {gone.message}") from None
            if refusal is not None:
                raise Forbidden(f"{_author(mandate)} may not do this: {refusal}.")

    def check_level(self, place: bytes, mandates: Mandates, level: Level) -> None:
        """Raise `DomainError` unless each of the authors has this level in an application or an organization.

        A place may also be a user: then it has to be the author.
        """
        for mandate in mandates:
            if self.rights(place, mandate).level < level:
                roles = ", ".join(role for role, highest in ROLES.items() if highest >= level)
                raise Forbidden(f"{_author(mandate)} may not do this: it needs one of the roles {roles}.")

    def judge(self, application: bytes) -> Callable[[Mandates, tuple[tuple[str, str], ...]], None]:
        """What raises `Forbidden` unless authors may perform operations, each with its access, in an application."""

        def judge(mandates: Mandates, asked: tuple[tuple[str, str], ...]) -> None:
            for operation, access in asked:
                self.check(application, mandates, operation, access)

        return judge

    def _forget(self, application: bytes) -> None:
        for key in [key for key in self._kept if key[0] == application]:
            self._drop(key)

    def _drop(self, key: tuple[bytes, Mandate]) -> None:
        self._system.revocations.release(self._kept.pop(key))


def _author(mandate: Mandate) -> str:
    kind = "user" if mandate.token is None else "API token"
    return f"The {kind} {mandate.name}, in whose name this acts,"
