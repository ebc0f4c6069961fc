"""Which applications are to be moved so that partitions are about equally busy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.actors.maintenance.balance import (
    MOVES_MAX,
    SMALL_BYTES,
    TOLERANCE,
    Application,
    Partition,
    Plan,
    is_balanced,
    mean_of,
    plan,
)

GIB = 1 << 30


def partition(load: float, size_bytes: int = 0, room: float = math.inf, disk: int = 0) -> Partition:
    return Partition(load, size_bytes, math.inf, disk, room)


def planned(loads: Sequence[float], applications: Mapping[str, tuple[int, float]]) -> Plan:
    """The plan for partitions whose bytes do not matter."""
    found = {id: Application(number, load) for id, (number, load) in applications.items()}
    return plan([partition(load) for load in loads], found)


def moved(made: Plan) -> list[tuple[str, int, int]]:
    return [(move.application, move.source, move.target) for move in made.moves]


def test_the_busiest_application_that_fits_is_moved_and_told_with_both_loads() -> None:
    made = planned([0.6, 0.2], {"a": (0, 0.21), "b": (0, 0.05), "c": (0, 0.3), "d": (1, 0.1)})
    (move,) = made.moves
    assert (move.application, move.source, move.target) == ("a", 0, 1)
    assert move.before == (0.6, 0.2)
    assert move.after == pytest.approx((0.39, 0.41))
    assert made.loads == pytest.approx([0.39, 0.41])
    assert not made.too_large


def test_within_the_tolerance_nothing_is_moved() -> None:
    applications = {str(number): (0, 0.01) for number in range(50)}
    assert not planned([0.54, 0.46], applications).moves
    assert planned([0.56, 0.44], applications).moves


def test_owners_with_next_to_nothing_to_do_are_left_alone() -> None:
    made = planned([0.008, 0.0], {"a": (0, 0.004), "b": (0, 0.004)})
    assert not made.moves
    assert not made.too_large


def test_an_application_that_is_busier_than_its_share_is_named_and_stays() -> None:
    made = planned([0.9, 0.1], {"a": (0, 0.83), "b": (0, 0.07)})
    assert moved(made) == [("b", 0, 1)]
    assert list(made.too_large) == ["a"]


def test_what_is_for_no_application_does_not_move() -> None:
    made = planned([0.9, 0.1], {"a": (1, 0.1)})
    assert not made.moves
    assert not made.too_large
    assert not is_balanced(made.loads)


def test_a_move_that_turns_out_not_to_be_needed_is_left_out() -> None:
    """One large move is what two partitions need: a small one before it would only be undone."""
    applications = {str(number): (0, 0.02) for number in range(10)} | {"large": (0, 0.19)}
    assert moved(planned([0.5, 0.1], applications)) == [("large", 0, 1)]


def test_the_smaller_of_two_equal_applications_is_moved() -> None:
    applications = {"a": Application(0, 0.2, 7 * GIB), "b": Application(0, 0.2, 5 * GIB)}
    made = plan([partition(0.6, 20 * GIB), partition(0.2, 5 * GIB)], applications)
    assert moved(made) == [("b", 0, 1)]


@pytest.mark.parametrize(
    ("source", "target", "application", "room", "moves"),
    [
        (20 * GIB, 10 * GIB, 5 * GIB, math.inf, 1),
        (20 * GIB, 10 * GIB, 15 * GIB, math.inf, 0),  # it would be larger than the largest is now
        (10 * GIB, 20 * GIB, 5 * GIB, math.inf, 0),  # the largest would be larger
        (100 * GIB, 100 * GIB, 5 * GIB, math.inf, 1),  # about equal
        (SMALL_BYTES // 8, SMALL_BYTES // 4, SMALL_BYTES // 8, math.inf, 1),
        (20 * GIB, 10 * GIB, 5 * GIB, 4 * GIB, 0),  # its disk has no room
    ],
)
def test_bytes_can_forbid_a_move(source: int, target: int, application: int, room: float, moves: int) -> None:
    applications = {"a": Application(0, 0.2, application)}
    made = plan([partition(0.6, source), partition(0.2, target, room, 1)], applications)
    assert len(made.moves) == moves


def test_a_quota_can_forbid_a_move() -> None:
    applications = {"a": Application(0, 0.2, 100)}
    full = Partition(0.2, 0, 99, 0, math.inf)
    assert not plan([partition(0.6), full], applications).moves


def test_partitions_on_one_disk_share_its_room() -> None:
    applications = {name: Application(0, 0.2, 60) for name in "abc"}
    one_disk = [partition(0.9), partition(0.1, 0, 100), partition(0.1, 0, 100)]
    assert len(plan(one_disk, applications).moves) == 1
    of_their_own = [partition(0.9), partition(0.1, 0, 100, 1), partition(0.1, 0, 100, 2)]
    assert len(plan(of_their_own, applications).moves) == 2


def test_of_many_applications_only_some_are_moved_at_a_time() -> None:
    made = planned([0.9, 0.1], {str(number): (0, 0.011) for number in range(80)})
    assert len(made.moves) == MOVES_MAX
    assert made.loads[0] == pytest.approx(0.9 - 0.011 * MOVES_MAX)


def test_what_would_not_be_felt_is_not_moved() -> None:
    assert not planned([0.9, 0.1], {str(number): (0, 0.002) for number in range(400)}).moves
    assert not planned([0.9, 0.1], {"large": (0, 0.88), "small": (0, 0.02)}).moves
    assert not planned([0.6, 0.05], {"the only one": (0, 0.56)}).moves, "then the other one is the busy one"


def test_a_small_move_beside_a_large_one_is_spared() -> None:
    applications = {"large": (0, 0.2), "small": (0, 0.005), "too large": (0, 0.6)}
    assert moved(planned([0.85, 0.05], applications)) == [("large", 0, 1)]


def test_a_small_move_is_made_if_it_is_all_that_it_takes() -> None:
    assert len(planned([0.551, 0.449], {str(number): (0, 0.002) for number in range(90)}).moves) == 1


# Any partitions.

LOADS = st.floats(0, 0.2).map(lambda load: round(load, 4))
SIZES = st.integers(0, 8 * GIB)


@st.composite
def servers(draw: st.DrawFn) -> tuple[list[Partition], dict[str, Application]]:
    """Partitions with applications, whose loads and bytes are parts of theirs."""
    count = draw(st.integers(2, 5))
    held = draw(st.lists(st.tuples(st.integers(0, count - 1), LOADS, SIZES), max_size=12))
    applications = {f"{at:02}": Application(*each) for at, each in enumerate(held)}
    partitions = []
    for number in range(count):
        own = [each for each in applications.values() if each.partition == number]
        load = draw(LOADS) + sum(each.load for each in own)
        size_bytes = draw(SIZES) + sum(each.size_bytes for each in own)
        quota, disk, room = draw(SIZES), draw(st.integers(0, 1)), 4 * GIB
        partitions.append(Partition(load, size_bytes, quota, disk, room))
    return partitions, applications


@given(servers())
def test_any_plan_is_sound(server: tuple[list[Partition], dict[str, Application]]) -> None:
    partitions, applications = server
    before = [each.load for each in partitions]
    made = plan(partitions, applications)
    if is_balanced(before):
        assert not made.moves
    loads, sizes = [*before], [each.size_bytes for each in partitions]
    most_bytes = max(*sizes, sum(sizes) / len(sizes) * (1 + TOLERANCE), SMALL_BYTES)
    quota_room = [each.quota_room_bytes for each in partitions]
    disk_room = {each.disk: each.disk_room_bytes for each in partitions}
    seen = set()
    for move in made.moves:
        known = applications[move.application]
        assert move.source == known.partition != move.target
        assert move.application not in seen
        seen.add(move.application)
        assert move.before == pytest.approx((loads[move.source], loads[move.target]))
        loads[move.source] -= known.load
        loads[move.target] += known.load
        assert max(move.after) < max(move.before), "the busier one is less busy"
        assert max(loads) <= max(before) + 1e-9, "the busiest never gets busier"
        sizes[move.target] += known.size_bytes
        sizes[move.source] -= known.size_bytes
        assert sizes[move.target] <= most_bytes + 1
        quota_room[move.target] -= known.size_bytes
        disk_room[partitions[move.target].disk] -= known.size_bytes
    assert min(quota_room) >= 0
    assert min(disk_room.values()) >= 0
    assert made.loads == pytest.approx(loads)
    assert sum(made.loads) == pytest.approx(sum(before))
    if made.moves:
        assert max(made.loads) < max(before) or before.count(max(before)) > 1
    most = mean_of(before) * (1 + TOLERANCE) + 1e-9
    for id in made.too_large:
        assert applications[id].load > most
    assert not seen & {*made.too_large}
    if not made.too_large and max(before) >= 0.01:
        assert all(each.load <= most for each in applications.values())


@given(st.lists(st.integers(1, 40), min_size=1, max_size=7), st.integers(2, 3))
def test_if_one_move_is_enough_one_is_proposed(tenths: list[int], count: int) -> None:
    applications = {str(at): (0, each / 100) for at, each in enumerate(tenths)}
    loads = [sum(tenths) / 100, *[0.05] * (count - 1)]
    made = planned(loads, applications)
    if is_balanced(loads):
        assert not made.moves
        return
    one_is_enough = any(
        is_balanced([loads[0] - load, loads[1] + load, *loads[2:]]) for _, load in applications.values()
    )
    assert (len(made.moves) == 1 and is_balanced(made.loads)) or not one_is_enough


def test_two_moves_are_proposed_where_the_best_single_one_leads_nowhere() -> None:
    """The largest that fits would leave the first partition too busy, and nothing fits beside it."""
    applications = {"a": (0, 0.30), "b": (0, 0.22), "c": (0, 0.21), "d": (0, 0.13)}
    made = planned([0.86, 0.0], applications)
    assert is_balanced(made.loads)
    assert len(made.moves) == 2
