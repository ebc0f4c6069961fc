"""A few seeds of the simulation, in processes of their own; the long form is `python -m tests.simulation`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from tests.simulation.disk import PAGE, torn
from tests.simulation.machine import DIVIDED_FROM
from tests.simulation.machines import MACHINES_FROM, SPREAD_FROM
from tests.simulation.model import Book, Broken, Change, Throttle
from tests.simulation.mqtt_client import TOPICS, Message, Mqtt, MqttClient
from tests.simulation.mutations import MUTATIONS
from tests.simulation.regressions import REGRESSIONS
from tests.simulation.shrinking import kind_of, shrunk
from tests.simulation.world import plan

FAULTS: Final = sorted({fault.seed for fault in REGRESSIONS if fault.seed})
SEEDS: Final = (
    [1, *(seed for seed in FAULTS if seed < DIVIDED_FROM)],
    [200_001, *(seed for seed in FAULTS if DIVIDED_FROM <= seed < MACHINES_FROM)],
    [MACHINES_FROM, MACHINES_FROM + 1, *(seed for seed in FAULTS if MACHINES_FROM <= seed < SPREAD_FROM)],
    [SPREAD_FROM + 3, *(seed for seed in FAULTS if seed >= SPREAD_FROM)],
)
"""With one partition, with several, two, three and four, whose processes die, and between which applications move, with
two and three machines, and with several partitions on several machines.

Those that have found a fault are among them.
"""
TOGETHER: Final = 4
"""So many seeds run one after the other in a test."""


def simulated(checkout: Path, hash_seed: int, *arguments: str) -> dict[str, str]:
    """The digests of seeds."""
    command = [sys.executable, "-m", "tests.simulation", *arguments]
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    return dict(re.findall(r"^seed (\d+): (\w+)$", done.stdout, re.MULTILINE))


@pytest.mark.slow
@pytest.mark.parametrize(
    "seeds", [group[at : at + TOGETHER] for group in SEEDS for at in range(0, len(group), TOGETHER)], ids=str
)
def test_seeds_keep_the_promises(checkout: Path, seeds: list[int]) -> None:
    here = simulated(checkout, 1, "--seeds", ",".join(map(str, seeds)))
    assert len(set(here.values())) == len(seeds)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [group[0] for group in SEEDS])
def test_seeds_replay_in_another_process(checkout: Path, seed: int) -> None:
    """Sets and dicts of texts may have another order there."""
    first, second = (simulated(checkout, hash_seed, "--seed", str(seed)) for hash_seed in (1, 7))
    assert list(first) == [str(seed)]
    assert first == second


# The model is the oracle, so it must refuse what is wrong.


def acknowledged(book: Book, name: str, state: str) -> Change:
    change = Change([(book, name, state)])
    change.stored()
    return change


def test_what_was_acknowledged_must_be_found() -> None:
    book = Book("rows")
    acknowledged(book, "a", "1")
    with book.watched() as window:
        pass
    window.check({"a": "1"})
    with pytest.raises(Broken, match="a is not there; it can only be '1'"):
        window.check({})
    with pytest.raises(Broken, match="which nobody has sent"):
        window.check({"a": "1", "b": "1"})


def test_what_was_refused_must_not_be_found_before_or_after() -> None:
    book = Book("rows")
    Change([(book, "a", "1")]).refused()
    with book.watched() as window:
        pass
    with pytest.raises(Broken, match="it can only be not there"):
        window.check({"a": "1"})
    seen = Change([(book, "b", "1")])
    with book.watched() as window:
        pass
    window.check({"b": "1"})
    with pytest.raises(Broken, match="was refused, and a reader saw '1' before"):
        seen.refused()


def test_a_reader_may_find_what_was_possible_meanwhile_and_nothing_older() -> None:
    book = Book("rows")
    acknowledged(book, "a", "1")
    with book.watched() as window:
        acknowledged(book, "a", "2")
    window.check({"a": "1"})
    with book.watched() as window:
        pass
    with pytest.raises(Broken, match="it can only be '2'"):
        window.check({"a": "1"})


def test_what_a_reader_has_seen_stays() -> None:
    book = Book("rows")
    Change([(book, "a", "1")])
    with book.watched() as window:
        pass
    window.check({"a": "1"})
    with book.watched() as window:
        pass
    with pytest.raises(Broken, match="it can only be '1'"):
        window.check({})


def test_a_change_without_an_answer_is_whole_or_not_there() -> None:
    book = Book("rows")
    change = Change([(book, "a", "1"), (book, "b", "1")])
    change.over()
    with book.watched() as window:
        pass
    window.check({"a": "1"})
    with pytest.raises(Broken, match="a part of the change"):
        change.check_whole()


def test_a_throttle_counts_what_is_sure_and_what_is_possible() -> None:
    throttle = Throttle(3, 10.0)
    throttle.end(throttle.begin(0.0), 0.0, passed=True)
    throttle.end(throttle.begin(1.0), 1.0, passed=None)
    throttle.end(throttle.begin(2.0), 2.0, passed=False)
    assert throttle.end(throttle.begin(9.5), 9.5, passed=True) == (1, 2)
    assert throttle.end(throttle.begin(10.0), 10.0, passed=True) == (1, 2)


def test_a_throttle_remembers_what_a_call_under_way_may_count() -> None:
    throttle = Throttle(3, 10.0)
    throttle.end(throttle.begin(0.0), 0.0, passed=True)
    slow = throttle.begin(1.0)
    throttle.begin(100.0)
    assert throttle.end(slow, 100.0, passed=True) == (0, 2)


def test_a_torn_file_has_old_and_new_sectors_and_the_old_pages_that_make_it_valid() -> None:
    before, after = b"a" * 3 * PAGE, b"b" * 4 * PAGE
    images = [torn(before, after, Random(seed)) for seed in range(20)]
    assert all(image[: 2 * PAGE] == before[: 2 * PAGE] for image in images)
    assert {bytes(set(image[2 * PAGE : 3 * PAGE])) for image in images} == {b"a", b"b", b"ab"}
    assert b"b" in torn(before, after, Random(3), metas=True)[: 2 * PAGE]


def arrival(mqtt: Mqtt, receiver: MqttClient, name: str, qos: int, *, lost: bool = False) -> None:
    """A message of the first topic comes to a client, which may lose it."""
    mqtt.arrives(receiver, name, qos)
    if not lost:
        mqtt.came(receiver, name, TOPICS[0], qos, None)


def receiver_of(mqtt: Mqtt, *names: str) -> MqttClient:
    """A client that awaits messages, which another one has sent with QoS 2 in this order."""
    receiver = mqtt.client(0)
    for serial, name in enumerate(names):
        mqtt.messages[name] = Message(name, TOPICS[0], 2, "another", serial, was_sent=True)
        acknowledged(receiver.inbox, name, name)
    return receiver


def test_a_message_must_not_come_behind_a_later_one_whatever_their_qos_and_whether_that_was_lost() -> None:
    for lost in (False, True):
        for qos in (1, 2):
            mqtt = Mqtt()
            receiver = receiver_of(mqtt, "m1", "m2")
            arrival(mqtt, receiver, "m2", 2, lost=lost)
            with pytest.raises(Broken, match="got m2 before m1"):
                arrival(mqtt, receiver, "m1", qos)


def test_a_message_that_was_lost_may_come_again_behind_later_ones_of_another_qos_only() -> None:
    mqtt = Mqtt()
    receiver = receiver_of(mqtt, "m1", "m2", "m3")
    arrival(mqtt, receiver, "m1", 1, lost=True)
    arrival(mqtt, receiver, "m2", 1, lost=True)
    arrival(mqtt, receiver, "m3", 2)
    arrival(mqtt, receiver, "m2", 1)
    with pytest.raises(Broken, match="got m2 before m1"):
        arrival(mqtt, receiver, "m1", 1)


# Tools.


def test_each_mutation_changes_a_text_that_is_there_once(checkout: Path) -> None:
    assert len({mutation.what for mutation in MUTATIONS}) == len(MUTATIONS) >= 40
    for mutation in (*MUTATIONS, *(each for fault in REGRESSIONS for each in fault.back)):
        assert (checkout / mutation.file).read_text().count(mutation.old) == 1, mutation
        assert mutation.old != mutation.new


def test_a_long_history_is_made_short() -> None:
    steps, asked = plan(1), []

    def fails(left: list[Any]) -> bool:
        asked.append(left)
        return steps[7] in left and steps[90] in left

    assert shrunk(steps, fails) == [steps[7], steps[90]]
    assert len(asked) <= 80
    assert kind_of("Broken: rows: rows 12 is not there") == kind_of("Broken: rows: rows 4 is not there")
