"""A damaged store is told and never served wrong: pages zeroed, bits flipped, the file cut, in every database.

Damage that a start finds is refused before LMDB reads the file. What a start does not find is found by the read of
the value, or it lies where nothing is stored, and then everything that is read is right.
"""

from __future__ import annotations

import random
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trunkline.store import codec, keys, pages
from trunkline.store.backup import verify
from trunkline.store.batch import Batch
from trunkline.store.directory import data_file
from trunkline.store.env import Store
from trunkline.store.errors import StoreBroken, StoreDamaged
from trunkline.store.snapshot import Snapshot

pytestmark = pytest.mark.disk

PAGE = 4096
ENTRIES = 300
Content = dict[str, list[tuple[bytes, bytes]]]


PLAIN = tuple(db for db in keys.DATABASES if db not in (keys.ARRIVALS, keys.SEGMENTS, keys.RUNS))
"""The databases that may hold anything; the others are read as reports and blocks (`test_timeline.py`)."""


def key(db: str, number: int) -> bytes:
    return b"%b key %06d" % (db.encode(), number)


def value(db: str, number: int) -> bytes:
    """Of every length up to 300 bytes; one is longer than a page, one is empty."""
    size = 9000 if number == ENTRIES // 2 else number % 300
    return codec.encode(b"%b value %06d" % (db.encode(), number) + b"." * size)


def content(store: Store) -> Content:
    """Everything in the store, each value read twice: in a scan and by its key."""
    with store.snapshot() as snapshot:
        found = {db: list(snapshot.range(db, b"", None)) for db in PLAIN}
        for db, entries in found.items():
            assert list(snapshot.keys(db, b"", None)) == [name for name, _ in entries]
            assert all(snapshot.get(db, name) == stored for name, stored in entries)
    return found


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Content]:
    """A closed store with several levels of pages in every database, and with free pages; and what it holds."""
    data = tmp_path_factory.mktemp("sound") / "data"
    with Store.open(data, map_size_bytes=16 * 2**20) as store:
        for part in range(3):
            batch = Batch()
            for db in PLAIN:
                for number in range(part, ENTRIES, 3):
                    batch.put(db, key(db, number), value(db, number))
                for number in range(part * 30, part * 30 + 10):
                    batch.put(db, b"gone %06d" % number, bytes(200))
                for number in range(part * 30 - 30, part * 30 - 20):
                    batch.delete(db, b"gone %06d" % max(number, 0))
            group = store.journal.submit(batch)
            store.journal.flush()
            assert group.error is None
        held = content(store)
    return data, held


@pytest.fixture
def data(sound: tuple[Path, Content], tmp_path: Path) -> Path:
    """A copy of the store that the test may damage."""
    shutil.copytree(sound[0], tmp_path / "data")
    return tmp_path / "data"


def change(data: Path, offset: int, content: bytes) -> None:
    with data_file(data).open("r+b") as file:
        file.seek(offset)
        file.write(content)


def flip(data: Path, offset: int, bit: int = 0) -> None:
    change(data, offset, bytes([data_file(data).read_bytes()[offset] ^ 1 << bit]))


def walked(data: Path) -> pages._Walk:
    """A walk over all pages of a sound file."""
    with pages._reading(data_file(data)) as descriptor:
        meta, _ = pages._newest_meta(descriptor)
        walk = pages._Walk(descriptor, meta, None, leaves=True)
        walk.run()
    assert not walk.problems
    return walk


def trees(data: Path) -> dict[str, pages.Tree]:
    """The trees of the databases in a sound file."""
    return dict(walked(data)._named)


def place_of(data: Path, needle: bytes) -> int:
    """Where these bytes are stored; older copies are in free pages and in the free parts of pages."""
    raw, used = data_file(data).read_bytes(), walked(data)._used
    place = -1
    while True:
        place = raw.index(needle, place + 1)
        page, inside = divmod(place, PAGE)
        _, _, flags, _, upper = pages._HEADER.unpack_from(raw, page * PAGE)
        if used[page] and (flags == pages._OVERFLOW or inside >= upper):
            return place


def leaf_of(data: Path, db: str, number: int) -> int:
    """The page of the entry with this number."""
    return place_of(data, key(db, number)) // PAGE


def refused(data: Path) -> str:
    """The sentence that refuses a start."""
    before = data_file(data).read_bytes()
    with pytest.raises(StoreDamaged) as refusal:
        Store.open(data)
    said = str(refusal.value)
    assert said.startswith(f"{data_file(data)} is damaged: ")
    assert f"`trunkline check --data {data}`" in said
    assert "restore a backup" in said
    assert data_file(data).read_bytes() == before, "nothing is changed"
    return said


def test_a_sound_store_is_sound(sound: tuple[Path, Content]) -> None:
    data, held = sound
    found = pages.inspect(data_file(data))
    assert (found.problems, found.complete) == ([], True)
    plain = {db: tree for db, tree in trees(data).items() if db in PLAIN}
    assert {db: tree.entries for db, tree in plain.items()} == {db: len(held[db]) for db in PLAIN}
    assert min(tree.depth for tree in plain.values()) >= 2
    assert min(tree.overflow_pages for tree in plain.values()) >= 3
    with Store.open(data, map_size_bytes=16 * 2**20) as store:
        assert content(store) == held


# Each kind of damage, in each database.


@pytest.mark.parametrize("db", PLAIN)
def test_a_zeroed_leaf_is_refused_at_the_start(data: Path, db: str) -> None:
    page = leaf_of(data, db, 100)
    change(data, page * PAGE, bytes(PAGE))
    assert f"{db}: page {page} is empty" in refused(data)


@pytest.mark.parametrize("db", PLAIN)
def test_a_zeroed_branch_is_refused_at_the_start(data: Path, db: str) -> None:
    page = trees(data)[db].root
    change(data, page * PAGE, bytes(PAGE))
    assert f"{db}: page {page} is empty" in refused(data)


@pytest.mark.parametrize("db", PLAIN)
def test_a_page_in_the_place_of_another_is_refused_at_the_start(data: Path, db: str) -> None:
    """A write that the disk has put into the wrong place."""
    page, other = leaf_of(data, db, 100), leaf_of(data, db, 200)
    assert page != other
    change(data, page * PAGE, data_file(data).read_bytes()[other * PAGE :][:PAGE])
    assert f"{db}: page {page} has the number {other}" in refused(data)


@pytest.mark.parametrize("db", PLAIN)
def test_a_flipped_bit_in_a_value_is_found_by_the_read_and_by_the_check(data: Path, db: str) -> None:
    for number in (7, ENTRIES // 2):  # the second lies in pages of its own
        flip(data, place_of(data, b"%b value %06d" % (db.encode(), number)) + 3)
    with Store.open(data) as store, store.snapshot() as snapshot:
        for number in (7, ENTRIES // 2):
            with pytest.raises(StoreDamaged, match=rf"{db} {key(db, number).hex()} is not what was written"):
                snapshot.get(db, key(db, number))
            with pytest.raises(StoreDamaged, match="trunkline check"):
                list(snapshot.range(db, key(db, number), None))
            with pytest.raises(StoreDamaged):
                store.journal.get(db, key(db, number))
        assert snapshot.get(db, key(db, 8)) == value(db, 8), "the others are read"
    report = verify(data)
    # The format and the name of the encryption key are in `meta` too.
    found = {name: count for name, count in report.counts.items() if name in PLAIN}
    assert found == {name: ENTRIES + 10 + 2 * (name == keys.META) for name in PLAIN}
    for number in (7, ENTRIES // 2):
        assert any(problem.startswith(f"{db} {key(db, number).hex()}: ") for problem in report.problems)


@pytest.mark.parametrize("db", PLAIN)
def test_a_flipped_bit_in_a_key_is_found(data: Path, db: str) -> None:
    """The lowest bit: often the keys are still in order, so only the checksum tells."""
    flip(data, place_of(data, key(db, 8)) + len(key(db, 8)) - 1)
    try:
        with Store.open(data) as store, store.snapshot() as snapshot, pytest.raises(StoreDamaged):
            list(
                snapshot.keys(db, b"", None)
                if db in (keys.INDEXES, keys.CELLS)
                else snapshot.range(db, b"", None)
            )
    except StoreDamaged as refusal:
        assert "not in order" in str(refusal)  # noqa: PT017 - either is right
    else:
        assert any(problem.startswith(f"{db} ") for problem in verify(data).problems)


@pytest.mark.parametrize("number", [0, 9, ENTRIES - 1])
def test_an_entry_whose_key_has_changed_is_never_said_to_be_absent(data: Path, number: int) -> None:
    """Whatever bit of the key has changed, so that the keys are still in order."""
    db, name = keys.RECORDS, key(keys.RECORDS, number)
    place, after = place_of(data, name), name + b"\0"
    reads: tuple[Callable[[Store, Snapshot], Any], ...] = (
        lambda _, snapshot: snapshot.get(db, name),
        lambda _, snapshot: list(snapshot.range(db, name, after)),
        lambda _, snapshot: list(snapshot.range(db, name, after, reverse=True)),
        lambda _, snapshot: list(snapshot.keys(db, name, after)),
        lambda _, snapshot: snapshot.count(db, name, after),
        lambda store, _: store.journal.get(db, name),
        lambda store, _: store.journal.range(db, name, after),
    )
    unnoticed = 0
    for bit in range(8 * len(name)):
        flip(data, place + bit // 8, bit % 8)
        if not pages.inspect(data_file(data)).problems:
            unnoticed += 1
            with Store.open(data, map_size_bytes=16 * 2**20) as store, store.snapshot() as snapshot:
                for read in reads:
                    with pytest.raises(StoreDamaged, match="is not what was written"):
                        read(store, snapshot)
        flip(data, place + bit // 8, bit % 8)
    assert unnoticed, "a start finds each of these"


@pytest.mark.parametrize("db", PLAIN)
def test_a_flipped_bit_in_a_separator_is_refused_at_the_start(data: Path, db: str) -> None:
    """Searches would go to the wrong page and find nothing."""
    root = trees(data)[db].root * PAGE
    raw = data_file(data).read_bytes()[root : root + PAGE]
    place = raw.rfind(b"key 000")
    assert place > 0
    flip(data, root + place + len(b"key 000"), 1)
    assert f"{db}: page " in refused(data)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.99])
def test_a_cut_file_is_refused_at_the_start(data: Path, share: float) -> None:
    file = data_file(data)
    size = max(trees(data)[db].root for db in PLAIN) * PAGE
    with file.open("r+b") as opened:
        opened.truncate(max(1, int(size * share)))
    refused(data)


@pytest.mark.parametrize("number", [0, 1])
def test_a_zeroed_meta_page_is_refused_at_the_start(data: Path, number: int) -> None:
    change(data, number * PAGE, bytes(PAGE))
    assert f"meta page {number} is not one of LMDB" in refused(data)


def test_a_page_that_is_used_and_free_is_refused_at_the_start(data: Path) -> None:
    """A later commit would overwrite it."""
    walk, used = walked(data), leaf_of(data, keys.RECORDS, 100)
    root = walk._meta.free.root * PAGE
    _, free = walk.free_lists[-1]
    change(
        data, root + data_file(data).read_bytes()[root:][:PAGE].index(free) + 8, used.to_bytes(8, "little")
    )
    refused(data)


def test_the_time_of_the_check_at_the_start_is_bounded(data: Path) -> None:
    """Where the time is over, the rest is left to `trunkline check`."""
    assert not pages.inspect(data_file(data), seconds_max=0.0).complete
    Store.open(data, start_check_s=0.0).close()


# Any damage.


def outcome(data: Path, held: Content) -> str:
    """How a damaged store is found out; `missed` if what is read is wrong and nobody says so."""
    try:
        with Store.open(data, map_size_bytes=16 * 2**20) as store:
            return "harmless" if content(store) == held else "missed"
    except StoreDamaged as refusal:
        return "read" if "is not what was written" in str(refusal) else "start"
    except StoreBroken:
        return "start"  # LMDB itself refuses to open the file


def one_bit(random_: random.Random, data: Path, used: list[int]) -> None:
    flip(data, random_.choice(used) * PAGE + random_.randrange(PAGE), random_.randrange(8))


def some_bits(random_: random.Random, data: Path, used: list[int]) -> None:
    for _ in range(5):
        one_bit(random_, data, used)


def zeroed_page(random_: random.Random, data: Path, used: list[int]) -> None:
    change(data, random_.choice(used) * PAGE, bytes(PAGE))


def zeroed_sector(random_: random.Random, data: Path, used: list[int]) -> None:
    change(data, random_.choice(used) * PAGE + 512 * random_.randrange(8), bytes(512))


def random_sector(random_: random.Random, data: Path, used: list[int]) -> None:
    change(data, random_.choice(used) * PAGE + 512 * random_.randrange(8), random_.randbytes(512))


def cut(random_: random.Random, data: Path, used: list[int]) -> None:
    with data_file(data).open("r+b") as file:
        file.truncate(random_.randrange(used[-1] * PAGE))


DAMAGES: list[Callable[[random.Random, Path, list[int]], None]] = [
    one_bit,
    some_bits,
    zeroed_page,
    zeroed_sector,
    random_sector,
    cut,
]


def outcomes(
    sound: tuple[Path, Content], directory: Path, damage: Any, seed: int, rounds: int
) -> Counter[str]:
    source, held = sound
    used = [number for number, is_used in enumerate(walked(source)._used) if is_used]
    random_ = random.Random(seed)
    found: Counter[str] = Counter()
    for number in range(rounds):
        data = directory / str(number)
        shutil.copytree(source, data)
        damage(random_, data, used)
        found[outcome(data, held)] += 1
        shutil.rmtree(data)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_no_damage_is_served(sound: tuple[Path, Content], tmp_path: Path, damage: Any) -> None:
    found = outcomes(sound, tmp_path, damage, seed=1, rounds=10)
    assert found["missed"] == 0, found


@pytest.mark.load
@pytest.mark.timeout(3600)
def test_no_damage_is_served_in_many_rounds(
    sound: tuple[Path, Content], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Prints how often each kind of damage was found by what."""
    table = {damage.__name__: outcomes(sound, tmp_path, damage, seed=2, rounds=1000) for damage in DAMAGES}
    with capsys.disabled():
        for name, found in table.items():
            sys.stdout.write(f"\n{name}: {dict(sorted(found.items()))}")
    assert sum(found["missed"] for found in table.values()) == 0


@pytest.mark.load
@pytest.mark.timeout(3600)
def test_one_bit_of_the_meta_pages_is_not_found(sound: tuple[Path, Content], tmp_path: Path) -> None:
    """It makes the newest commit look like one that is older than the commit before; nothing else in the file tells."""
    source, held = sound
    missed = []
    for place in [page * PAGE + offset for page in (0, 1) for offset in range(pages._META_BYTES)]:
        for bit in range(8):
            data = tmp_path / f"{place} {bit}"
            shutil.copytree(source, data)
            flip(data, place, bit)
            if outcome(data, held) == "missed":
                missed.append((place % PAGE, bit))
            shutil.rmtree(data)
    transaction = pages._HEADER_BYTES + 128
    assert missed == [(transaction, 1)]
