"""What processes tell each other in memory: changes of records, and revoked subjects."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from trunkline.store.shared_numbers import RING_LENGTH, SharedNumbers


def subject(number: int) -> bytes:
    return number.to_bytes(12, "big")


def test_a_change_is_seen_by_all_others_and_not_by_who_made_it(tmp_path: Path) -> None:
    numbers = [SharedNumbers(tmp_path / "shared", own, 3) for own in range(3)]
    before = [each.changes() for each in numbers]
    numbers[1].note_change()
    after = [each.changes() for each in numbers]
    assert [now - then for now, then in zip(after, before, strict=True)] == [1, 0, 1]


def test_a_process_without_a_partition_sees_all_changes(tmp_path: Path) -> None:
    owner, door = SharedNumbers(tmp_path / "shared", 0, 2), SharedNumbers(tmp_path / "shared", None, 2)
    owner.note_change()
    owner.revoke(subject(7))
    assert door.changes() == 1
    assert door.has_revoked
    assert list(door.revoked()) == [subject(7)]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1 << 60)), max_size=30))
def test_each_process_sees_what_the_others_revoke_once(
    tmp_path_factory: object, steps: list[tuple[int, int]]
) -> None:
    path = tmp_path_factory.mktemp("numbers") / "shared"  # type: ignore[attr-defined]
    numbers = [SharedNumbers(path, own, 3) for own in range(3)]
    for own, number in steps:
        numbers[own].revoke(subject(number))
    for own, each in enumerate(numbers):
        wanted = sorted(subject(number) for by, number in steps if by != own)
        assert each.has_revoked == bool(wanted)
        assert sorted(found for found in each.revoked() if found is not None) == wanted
        assert not each.has_revoked
        assert list(each.revoked()) == []


def test_who_has_missed_too_many_is_told_that_any_may_be_revoked(tmp_path: Path) -> None:
    writer, reader = SharedNumbers(tmp_path / "shared", 0, 2), SharedNumbers(tmp_path / "shared", 1, 2)
    for number in range(RING_LENGTH + 1):
        writer.revoke(subject(number))
    assert list(reader.revoked()) == [None]
    writer.revoke(subject(1))
    assert list(reader.revoked()) == [subject(1)]


def test_all_look_again_when_an_owner_starts(tmp_path: Path) -> None:
    """It may have died after a commit, before it told the others."""
    owner, other = SharedNumbers(tmp_path / "shared", 0, 2), SharedNumbers(tmp_path / "shared", 1, 2)
    before = other.changes(), other.moves()
    owner.begin()
    assert (other.changes(), other.moves()) == (before[0] + 1, before[1] + 1)
    assert list(other.revoked()) == [None]
    owner.revoke(subject(3))
    assert list(other.revoked()) == [subject(3)]
    assert not owner.has_revoked


def test_the_numbers_go_on_when_a_process_starts_again(tmp_path: Path) -> None:
    reader = SharedNumbers(tmp_path / "shared", 1, 2)
    SharedNumbers(tmp_path / "shared", 0, 2).revoke(subject(1))
    again = SharedNumbers(tmp_path / "shared", 0, 2)
    again.revoke(subject(2))
    assert list(reader.revoked()) == [subject(1), subject(2)]
    # One that starts has nothing cached, so what was revoked before does not concern it.
    assert not SharedNumbers(tmp_path / "shared", 1, 2).has_revoked
