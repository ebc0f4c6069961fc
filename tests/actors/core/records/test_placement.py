"""Where keys live: every kind has a home, turns keep to it, and the exceptions are few and known."""

from __future__ import annotations

import pytest

from trunkline.actors.catalogue import ACTORS, KINDS
from trunkline.actors.core.records.placement import (
    CROSSINGS,
    READS,
    Home,
    home_of_actor,
    home_of_key,
    misplaced_writes,
)
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.ids import ROOT
from trunkline.store import keys
from trunkline.store.batch import Batch

APPLICATION, DEVICE, OTHER = b"a" * 12, b"d" * 12, b"o" * 12


def test_the_exceptions_do_not_grow() -> None:
    """A new one needs a way out that is better than none, and a reason to change this number."""
    assert len(CROSSINGS) == 8
    assert len(READS) == 12
    assert all(crossing.resolution and crossing.what for crossing in CROSSINGS)
    assert {crossing.actor for crossing in CROSSINGS} | set(READS) <= {actor.kind for actor in ACTORS}


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_every_kind_has_a_home(kind: object) -> None:
    name = getattr(kind, "name")  # noqa: B009 - the parameter is an object
    record = home_of_key(KINDS, keys.RECORDS, keys.record_key(name, APPLICATION, DEVICE))
    index = home_of_key(KINDS, keys.INDEXES, keys.index_key(name, APPLICATION, "name", b"x", DEVICE))
    total = home_of_key(KINDS, keys.COUNTS, keys.total_key(name, APPLICATION))
    assert record == index
    assert record.place == total.place


def test_every_database_has_a_home() -> None:
    known = {
        keys.TIMELINE: Home("device", DEVICE),
        keys.COMMANDS: Home("device", DEVICE),
        keys.LOGS: Home("device", DEVICE),
        keys.ROWS: Home("application"),
        keys.CELLS: Home("application"),
        keys.EVENTS: Home("application", DEVICE),
        keys.FLOWS: Home("application", DEVICE),
        keys.MESSAGES: Home("application", DEVICE),
        keys.COUNTS: Home("application", DEVICE),
        keys.META: Home("application"),
        keys.UNIQUE: Home("root"),
        keys.ARRIVALS: Home("device", DEVICE),
    }
    others = {keys.RECORDS, keys.INDEXES, keys.SEGMENTS, keys.RUNS, keys.TRIGGERS, keys.ANSWERS}
    assert {*known, *others} == set(keys.DATABASES)
    for db, home in known.items():
        assert home_of_key(KINDS, db, DEVICE + b"rest") == home


@pytest.mark.parametrize(
    ("ref", "db", "key", "right"),
    [
        (Ref("device", APPLICATION, DEVICE), keys.RUNS, keys.block_key(1, DEVICE, 5), True),
        (Ref("device", APPLICATION, DEVICE), keys.RUNS, keys.block_key(1, OTHER, 5), False),
        (
            Ref("device", APPLICATION, DEVICE),
            keys.RECORDS,
            keys.record_key("device", APPLICATION, DEVICE),
            True,
        ),
        (Ref("device", APPLICATION, DEVICE), keys.RECORDS, keys.record_key("device", OTHER, DEVICE), False),
        (Ref("device", APPLICATION, DEVICE), keys.UNIQUE, b"x" * 16, False),
        (
            Ref("eventLog", APPLICATION, APPLICATION),
            keys.EVENTS,
            keys.event_detail_key(APPLICATION, OTHER),
            True,
        ),
        (Ref("eventLog", APPLICATION, APPLICATION), keys.EVENTS, keys.event_detail_key(OTHER, OTHER), False),
        (Ref("eventLog", APPLICATION, APPLICATION), keys.TIMELINE, keys.head_key(DEVICE), False),
        (Ref("application", ROOT, APPLICATION), keys.UNIQUE, b"x" * 16, True),
        (
            Ref("application", ROOT, APPLICATION),
            keys.RECORDS,
            keys.record_key("application", ROOT, OTHER),
            False,
        ),
        (
            Ref("device", APPLICATION, DEVICE),
            keys.TRIGGERS,
            keys.trigger_key(7, "device", DEVICE),
            True,
        ),
        (
            Ref("device", APPLICATION, DEVICE),
            keys.TRIGGERS,
            keys.trigger_key(7, "application", APPLICATION),
            False,
        ),
        (
            Ref("device", APPLICATION, DEVICE),
            keys.ANSWERS,
            keys.answer_key(keys.answers_prefix(APPLICATION, "device", DEVICE), b"x"),
            True,
        ),
        (
            Ref("device", APPLICATION, DEVICE),
            keys.ANSWERS,
            keys.answer_key(keys.answers_prefix(APPLICATION, "device", OTHER), b"x"),
            False,
        ),
        (
            Ref("dataTable", APPLICATION, OTHER),
            keys.ANSWERS,
            keys.answers_head_key(keys.answers_prefix(APPLICATION, "dataTable", OTHER)),
            True,
        ),
        (
            Ref("eventLog", APPLICATION, APPLICATION),
            keys.ANSWERS,
            keys.answers_head_key(keys.answers_prefix(OTHER, "eventLog", OTHER)),
            False,
        ),
        (Ref("flow", APPLICATION, OTHER), keys.META, keys.flow_timers_key(APPLICATION, OTHER), True),
        (Ref("flow", APPLICATION, OTHER), keys.META, keys.flow_timers_key(DEVICE, OTHER), False),
        (
            Ref("scheduledPresses", APPLICATION, APPLICATION),
            keys.META,
            keys.scheduled_key(APPLICATION, 7, OTHER),
            True,
        ),
        (
            Ref("scheduledPresses", APPLICATION, APPLICATION),
            keys.META,
            keys.scheduled_key(DEVICE, 7, OTHER),
            False,
        ),
        (
            Ref("webhook", APPLICATION, OTHER),
            keys.META,
            keys.webhook_connection_key(APPLICATION, OTHER, OTHER),
            True,
        ),
        (
            Ref("webhook", APPLICATION, OTHER),
            keys.META,
            keys.webhook_connection_key(DEVICE, OTHER, OTHER),
            False,
        ),
        (Ref("user", ROOT, OTHER), keys.RECORDS, keys.record_key("apiToken", OTHER, DEVICE), True),
        (Ref("user", ROOT, OTHER), keys.RECORDS, keys.record_key("apiToken", APPLICATION, DEVICE), False),
    ],
)
def test_a_turn_keeps_to_its_home(ref: Ref, db: str, key: bytes, right: bool) -> None:
    batch = Batch()
    batch.put(db, key, b"")
    assert (not list(misplaced_writes(KINDS, ref, batch))) == right


def test_actors_live_where_their_ref_says() -> None:
    assert home_of_actor(Ref("user", ROOT, OTHER)) == Home("root")
    assert home_of_actor(Ref("application", ROOT, APPLICATION)) == Home("application", APPLICATION)
    assert home_of_actor(Ref("dataTable", APPLICATION, OTHER)) == Home("application", APPLICATION)
    assert home_of_actor(Ref("device", APPLICATION, DEVICE)) == Home("device", DEVICE)
