"""Revocations: access ends when a record that it depends on changes.

Owns which bearers depend on which subjects. A bearer is a verified token; a subject is the id of a record that its
access depends on (a user, a key, a token, an application, a device). Revoking a subject affects only the bearers
that depend on it. Does not own what a bearer may do (`actors/access/authority.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline.store.shared_numbers import SharedNumbers


class Bearer:
    """A verified token, until it is `revoked`.

    `watchers` are called once when it is revoked: open streams, which then verify their token again. `holders` is
    the number of caches and streams that use it.
    """

    __slots__ = ("_subjects", "holders", "revoked", "watchers")

    def __init__(self) -> None:
        self.revoked = False
        self.holders = 0
        self.watchers: dict[Callable[[], None], None] = {}
        self._subjects: dict[bytes, None] = {}

    @property
    def subjects(self) -> Iterable[bytes]:
        """The records that its access depends on."""
        return self._subjects

    def add_subject(self, subject: bytes) -> None:
        """Add a subject, before the bearer is held; after that, use `Revocations.add_subject`."""
        self._subjects[subject] = None


class Revocations:
    """The bearers that are held, by subject. `revoked` counts revoked bearers.

    `shared` tells the processes of other partitions, and what they say: `follow` before a cached bearer is relied on.
    """

    def __init__(self) -> None:
        self.revoked = 0
        self.shared: SharedNumbers | None = None
        self._bearers: dict[bytes, dict[Bearer, None]] = {}

    def __len__(self) -> int:
        """The number of subjects that held bearers depend on."""
        return len(self._bearers)

    def hold(self, bearer: Bearer) -> None:
        """Register a holder of a bearer: a cache, or an open stream. Each `hold` needs one `release`."""
        bearer.holders += 1
        if bearer.holders == 1 and not bearer.revoked:
            for subject in bearer.subjects:
                self._bearers.setdefault(subject, {})[bearer] = None

    def release(self, bearer: Bearer) -> None:
        """Remove a holder. After the last one, the bearer is forgotten."""
        bearer.holders -= 1
        if not bearer.holders:
            self._forget(bearer)

    def add_subject(self, bearer: Bearer, subject: bytes) -> None:
        """Add a subject to a bearer that may be held."""
        bearer.add_subject(subject)
        if bearer.holders and not bearer.revoked:
            self._bearers.setdefault(subject, {})[bearer] = None

    def revoke(self, subject: bytes) -> None:
        """Revoke all bearers that depend on a subject. Never waits; the cost is proportional to their number."""
        if self.shared is not None:
            self.shared.revoke(subject)
        self._revoke(subject)

    def follow(self) -> None:
        """Revoke what the processes of other partitions have revoked."""
        if self.shared is None or not self.shared.has_revoked:
            return
        for subject in self.shared.revoked():
            for each in [*self._bearers] if subject is None else (subject,):
                self._revoke(each)

    def _revoke(self, subject: bytes) -> None:
        for bearer in list(self._bearers.get(subject, ())):
            bearer.revoked = True
            self.revoked += 1
            self._forget(bearer)
            for wake in list(bearer.watchers):
                wake()

    def _forget(self, bearer: Bearer) -> None:
        for subject in bearer.subjects:
            bearers = self._bearers.get(subject)
            if bearers is not None:
                bearers.pop(bearer, None)
                if not bearers:
                    del self._bearers[subject]
