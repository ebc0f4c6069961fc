"""A scratch copy shows what the store would contain, and the store stays as it is."""

from __future__ import annotations

import pytest

from trunkline.store import keys
from trunkline.store.batch import Batch
from trunkline.store.codec import decode
from trunkline.store.env import Store
from trunkline.store.errors import StoreFull
from trunkline.store.scratch import Scratch


def test_it_merges_what_is_stored_with_what_would_be(store: Store) -> None:
    stored = Batch()
    for number in range(0, 1000, 2):
        stored.put(keys.META, b"k%03d" % number, b"stored")
    stored.add(keys.COUNTS, b"count", {"n": 2})
    store.journal.submit(stored)
    store.journal.flush()
    with store.snapshot() as snapshot, Scratch(snapshot, bytes_max=1_000_000) as scratch:
        batch = Batch()
        for number in range(1, 1000, 2):
            batch.put(keys.META, b"k%03d" % number, b"new")
        batch.put(keys.META, b"k000", b"changed")
        batch.delete(keys.META, b"k002")
        batch.add(keys.COUNTS, b"count", {"n": 1})
        scratch.apply(batch)
        expected = [(b"k%03d" % number, b"new" if number % 2 else b"stored") for number in range(1000)]
        expected[0] = (b"k000", b"changed")
        del expected[2]
        assert list(scratch.range(keys.META, b"k", b"l")) == expected
        assert list(scratch.range(keys.META, b"k", b"l", reverse=True)) == expected[::-1]
        assert list(scratch.keys(keys.META, b"k500", b"k510", skip=3)) == [
            b"k%03d" % n for n in range(503, 510)
        ]
        assert scratch.get(keys.META, b"k002") is None
        assert decode(scratch.get(keys.COUNTS, b"count") or b"") == {"n": 3}
        assert snapshot.get(keys.META, b"k000") == b"stored"


def test_it_is_bounded(store: Store) -> None:
    with store.snapshot() as snapshot, Scratch(snapshot, bytes_max=1000) as scratch:
        batch = Batch()
        batch.put(keys.META, b"k", bytes(2000))
        with pytest.raises(StoreFull):
            scratch.apply(batch)
