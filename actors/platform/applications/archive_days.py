"""Which days of an application are archived.

Owns the stored note of it, which the application's actor writes. Days are numbers: days since 1970, UTC.

From `since` on, each day that becomes old enough is to be archived, and nothing of it is removed before because of its
age. A backfill makes `since` earlier; `scheduled` is what it was at first. `spans` are the archived days as pairs of a
first and a last day, in order and with gaps between them. `begun_ms` is the time of the configuration that they were
archived by: another place or content begins anew. `tables_day` is the last day on which the data tables were copied,
or -1.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.structs import Message
from trunkline.limits.table import DAY_MS
from trunkline.store import keys
from trunkline.store.codec import decode, encode

if TYPE_CHECKING:
    from trunkline.limits.table import Limits
    from trunkline.store.snapshot import Snapshot

Included = Literal["devices", "events", "tables", "export"]

_INCLUDES: Final[dict[Included, str]] = {
    "devices": "includeDevices",
    "events": "includeEvents",
    "tables": "includeDataTables",
    "export": "includeApplicationExport",
}
_EPOCH: Final = date(1970, 1, 1).toordinal()


class NoteArchived(Message, frozen=True):
    """Note that days are archived, by the configuration of `begun_ms`. Another one is a refusal."""

    begun_ms: int
    first: int
    last: int


class ArchiveSince(Message, frozen=True):
    """Archive the days from `day` on as well."""

    begun_ms: int
    day: int


class NoteTables(Message, frozen=True):
    """Note that the data tables were copied."""

    begun_ms: int
    day: int


class ArchiveDays(NamedTuple):
    """The note."""

    begun_ms: int
    since: int
    spans: tuple[tuple[int, int], ...] = ()
    tables_day: int = -1
    scheduled: int = 0

    def encoded(self) -> bytes:
        """The stored bytes."""
        return encode(self)

    @classmethod
    def decoded(cls, raw: bytes) -> ArchiveDays:
        """Read the stored bytes."""
        begun_ms, since, spans, *rest = decode(raw)
        return cls(begun_ms, since, tuple((first, last) for first, last in spans), *rest)

    @classmethod
    def begun(cls, now_ms: int, since: int) -> ArchiveDays:
        """The note of a new configuration."""
        return cls(now_ms, since, scheduled=since)

    def added(self, first: int, last: int) -> ArchiveDays:
        """With these days archived."""
        spans: list[tuple[int, int]] = []
        for low, high in sorted((*self.spans, (first, last))):
            if spans and low <= spans[-1][1] + 1:
                spans[-1] = (spans[-1][0], max(spans[-1][1], high))
            else:
                spans.append((low, high))
        return self._replace(spans=tuple(spans))

    def next_open(self, day: int) -> int:
        """The first day from `day` on that is not archived."""
        for first, last in self.spans:
            if first <= day <= last:
                return last + 1
        return day

    def was_kept(self, day: int) -> bool:
        """Whether nothing of a day was removed because of its age."""
        return day >= self.scheduled and self.next_open(day) == day

    def check(self, begun_ms: int) -> None:
        """Raise `Invalid` if the configuration is not the one of `begun_ms`."""
        if self.begun_ms != begun_ms:
            raise Invalid(
                "archiveConfig was changed while the job ran; what it had written stays. Queue it again."
            )


def find_days(snapshot: Snapshot, application: bytes) -> ArchiveDays | None:
    """The note of an application; None if it has no archive configuration."""
    raw = snapshot.get(keys.META, keys.archive_key(application))
    return None if raw is None else ArchiveDays.decoded(raw)


def configured(snapshot: Snapshot) -> Iterator[bytes]:
    """Yield the id of each application with an archive configuration."""
    prefix = keys.ARCHIVE_PREFIX
    for key in snapshot.keys(keys.META, prefix, keys.prefix_end(prefix)):
        yield bytes(key[len(prefix) :])


def read_config(snapshot: Snapshot, application: bytes) -> Doc | None:
    """The archive configuration of an application; None if it has none, or if there is no such application."""
    found = records.find(snapshot, APPLICATION, ROOT, application)
    return None if found is None else found.doc.get("archiveConfig")


def includes(config: Doc, what: Included) -> bool:
    """Whether a configuration archives this regularly."""
    return bool(config.get(_INCLUDES[what], what == "devices"))


def includes_days(config: Doc) -> bool:
    """Whether a configuration archives anything that belongs to a day."""
    return includes(config, "devices") or includes(config, "events")


def oldest_unarchived_ms(
    snapshot: Snapshot, application: bytes, what: Literal["devices", "events"]
) -> int | None:
    """The time before which all that is to be archived lies in the archive; None if this is not archived.

    For the removal of old data: what is younger must stay, whatever the retention says. The answer also covers devices
    that the configuration leaves out.
    """
    config, days = read_config(snapshot, application), find_days(snapshot, application)
    if config is None or days is None or not includes(config, what):
        return None
    return days.next_open(days.since) * DAY_MS


def last_due_day(now_ms: int, delay_days: int, limits: Limits) -> int:
    """The last day of which every moment is old enough to be archived."""
    return now_ms // DAY_MS - max(delay_days, limits.archive_age_min_days) - 1


def day_text(day: int) -> str:
    """A day as `yyyy-mm-dd`."""
    return date.fromordinal(_EPOCH + day).isoformat()


def day_number(text: str) -> int:
    """The number of a day."""
    return date.fromisoformat(text).toordinal() - _EPOCH
