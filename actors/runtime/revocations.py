"""Revocations: access that was granted because of something ends when that changes.

Owns which bearers depend on which subjects. A bearer is what a verified token amounts to; a subject is the id of a
record that it was granted because of (a user, a key, a token, an application, a device). Revoking a subject costs
those that depend on it, and nobody else. Does not own what a bearer may do (`actors/authority.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable


class Bearer:
    """What a verified token amounts to, until it is `revoked`.

    `watchers` are called once when it is revoked: open streams, which then verify their token again.
    """

    __slots__ = ("_subjects", "holders", "revoked", "watchers")

    def __init__(self) -> None:
        self.revoked = False
        self.holders = 0
        self.watchers: dict[Callable[[], None], None] = {}
        self._subjects: dict[bytes, None] = {}

    @property
    def subjects(self) -> Iterable[bytes]:
        """What it was granted because of."""
        return self._subjects

    def rests_on(self, subject: bytes) -> None:
        """Name a subject. Before the bearer is held; later ones go through `Revocations.add_subject`."""
        self._subjects[subject] = None


class Revocations:
    """The bearers that somebody holds, by subject. `revoked` counts bearers whose access ended."""

    def __init__(self) -> None:
        self.revoked = 0
        self._bearers: dict[bytes, dict[Bearer, None]] = {}

    def __len__(self) -> int:
        """How many subjects somebody depends on."""
        return len(self._bearers)

    def hold(self, bearer: Bearer) -> None:
        """Keep a bearer: a cache, or an open stream. Give it back with `release`."""
        bearer.holders += 1
        if bearer.holders == 1 and not bearer.revoked:
            for subject in bearer.subjects:
                self._bearers.setdefault(subject, {})[bearer] = None

    def release(self, bearer: Bearer) -> None:
        """One holder less. The last one lets go of it."""
        bearer.holders -= 1
        if not bearer.holders:
            self._forget(bearer)

    def add_subject(self, bearer: Bearer, subject: bytes) -> None:
        """A bearer depends on one more subject from now on."""
        bearer.rests_on(subject)
        if bearer.holders and not bearer.revoked:
            self._bearers.setdefault(subject, {})[bearer] = None

    def revoke(self, subject: bytes) -> None:
        """End all access that was granted because of a subject. Never waits; takes as long as there are bearers."""
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
