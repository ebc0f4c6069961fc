"""The queue: applications and workflows take turns, a trigger id has one run at a time, and all is bounded."""

from __future__ import annotations

from typing import Any

from tests.actors.house import ManualClock
from trunkline.actors.workflows.triggers.queue import Queued, TriggerQueue
from trunkline.limits.table import Limits


def id_of(name: str) -> bytes:
    return name.encode().ljust(12)


def queue_of(**limits: Any) -> TriggerQueue:
    return TriggerQueue(Limits(**limits), ManualClock())


def add(queue: TriggerQueue, application: str, flow: str, *trigger_ids: str) -> None:
    for each in trigger_ids:
        number = queue.next_number()
        queue.add([Queued(number, b"k", id_of(application), id_of(flow), each, each.encode())])


def taken(queue: TriggerQueue, most: int = 100) -> list[Queued]:
    found: list[Queued] = []
    while len(found) < most and (entry := queue.take()) is not None:
        found.append(entry)
    return found


def shown(entries: list[Queued]) -> list[str]:
    return [
        f"{each.application.decode().strip()}/{each.flow.decode().strip()}/{each.trigger_id}"
        for each in entries
    ]


def test_applications_and_their_workflows_take_turns() -> None:
    queue = queue_of()
    add(queue, "a", "f", "1", "2", "3")
    add(queue, "a", "g", "1")
    add(queue, "b", "h", "1", "2")
    assert shown(taken(queue)) == ["a/f/1", "b/h/1", "a/g/1", "b/h/2", "a/f/2", "a/f/3"]
    assert queue.waiting == 0


def owned(application: bytes) -> bytes:
    """The owner of an application is its first letter."""
    return application[:1]


def test_owners_take_turns_whatever_the_number_of_their_applications() -> None:
    queue = TriggerQueue(Limits(), ManualClock(), owned)
    for name in ("a1", "a2", "a3", "b1"):
        add(queue, name, "f", "1", "2")
    begun = [each.split("/")[0] for each in shown(taken(queue))]
    assert begun == ["a1", "b1", "a2", "b1", "a3", "a1", "a2", "a3"]


def test_an_owner_has_half_of_the_places_for_runs() -> None:
    queue = TriggerQueue(Limits(flow_runs_max=8), ManualClock(), owned)
    for name in ("a1", "a2", "a3"):
        add(queue, name, "f", "1", "2", "3", "4")
    begun = taken(queue)
    assert len(begun) == 4
    add(queue, "b1", "f", "1", "2", "3")
    assert shown(taken(queue)) == ["b1/f/1", "b1/f/2"]
    queue.done(begun[0])
    assert [each.application[:1] for each in taken(queue)] == [b"b"]


def test_a_full_queue_drops_what_waits_of_the_owner_with_the_most() -> None:
    queue = TriggerQueue(Limits(trigger_queue_length_max=10), ManualClock(), owned)
    for name, count in (("a1", 2), ("a2", 5), ("a3", 3)):
        add(queue, name, "f", *map(str, range(count)))
    add(queue, "b1", "f", "1", "2", "3")
    assert [each.application.strip() for each in queue.dropped] == [b"a2"] * 3
    assert queue.waiting == 10
    assert "The queue of the server is full (10 triggers)" in queue.dropped[0].reason
    add(queue, "a3", "f", "9")
    assert queue.dropped[-1].application.strip() == b"a3"
    assert queue.is_half_full(id_of("a1"))
    assert not queue.is_half_full(id_of("c1"))


def test_a_trigger_id_has_one_run_at_a_time_in_the_order_of_the_causes() -> None:
    queue = queue_of()
    add(queue, "a", "f", "1", "1", "2")
    first, other = taken(queue)
    assert shown([first, other]) == ["a/f/1", "a/f/2"]
    queue.done(other)
    assert taken(queue) == []
    queue.done(first)
    (second,) = taken(queue)
    assert second.number > first.number
    queue.done(second)
    assert taken(queue) == []


def test_a_workflow_and_an_application_have_only_so_many_runs() -> None:
    queue = queue_of(concurrent_flow_runs_max=2, concurrent_application_runs_max=3)
    add(queue, "a", "f", "1", "2", "3")
    add(queue, "a", "g", "1", "2", "3")
    add(queue, "b", "h", "1")
    running = taken(queue)
    assert shown(running) == ["a/f/1", "b/h/1", "a/g/1", "a/f/2"]
    queue.done(running[0])
    (next_one,) = taken(queue)
    assert shown([next_one]) == ["a/g/2"]
    for entry in (*running[1:], next_one):
        queue.done(entry)
    assert shown(taken(queue)) == ["a/f/3", "a/g/3"]


def test_a_full_queue_drops_the_oldest_of_the_workflow() -> None:
    queue = queue_of(flow_queue_length_max=2)
    add(queue, "a", "f", "1", "2", "1")
    add(queue, "a", "g", "9")
    (dropped,) = queue.dropped
    assert dropped.flow == id_of("f")
    assert "full" in dropped.reason
    left = taken(queue)
    assert sorted(shown(left)) == ["a/f/1", "a/f/2", "a/g/9"]
    assert not any(entry.gone for entry in left)
    assert queue.waiting == 0


def test_numbers_rise_also_when_the_clock_is_set_back() -> None:
    clock = ManualClock()
    queue = TriggerQueue(Limits(), clock)
    first = queue.next_number()
    clock.set_wall(1)
    assert queue.next_number() > first
    queue.begin_after(first + 100)
    assert queue.next_number() > first + 100
