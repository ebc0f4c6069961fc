"""Who gets the messages of topics, and what is kept of them: against the real store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.actors.house import House, running_house
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Invalid, StorageFull
from trunkline.actors.core.values.origin import Origin
from trunkline.actors.data.topics.broker import Broker, ClientEnd
from trunkline.actors.data.topics.messages import PublishInRun
from trunkline.actors.data.topics.publication import (
    ConnectClient,
    DisconnectClient,
    Publication,
    PublishFromClient,
)
from trunkline.actors.data.topics.queues import Queued
from trunkline.actors.data.topics.retained import retained_of
from trunkline.actors.data.topics.session_records import Options
from trunkline.limits.table import Limits
from trunkline.store import keys


class Listener:
    """A client that writes down what it gets."""

    session: bytes | None = None

    def __init__(self, name: str, *, has_room: bool = True) -> None:
        self.key = name.encode().ljust(keys.ID_BYTES, b".")
        self.got: list[Any] = []
        self.ended: ClientEnd | None = None
        self.room = has_room

    def deliver(self, publication: Publication, qos: int, ids: tuple[int, ...], *, retain: bool) -> None:
        self.got.append((publication.topic, publication.payload, qos, ids, retain))

    def offer(self, queued: Queued, publication: Publication) -> None:
        self.got.append((publication.topic, publication.payload, queued.qos, queued.ids, queued.retain))

    def take_shared(self) -> None:
        """No session of these clients outlives its connection."""

    def has_room(self) -> bool:
        return self.room

    def end(self, why: ClientEnd) -> None:
        self.ended = why

    @property
    def topics(self) -> list[str]:
        return [topic for topic, *_ in self.got]


def connect(house: House, *clients: Listener) -> Broker:
    broker = house.system.component(Broker)
    for client in clients:
        broker.connect(house.application, client)
    return broker


async def publish(
    house: House,
    topic: str,
    payload: bytes = b"x",
    *,
    qos: int = 0,
    retain: bool = False,
    by: Listener | None = None,
    **more: Any,
) -> None:
    key = b"publisher..." if by is None else by.key
    message = Publication(topic, payload, qos, publisher=key, **more)
    await house.system.ask(
        Ref("publisher", house.application, key),
        PublishFromClient(publication=message, retain=retain, origin=None),
    )


def retained(house: House, filter: str = "#") -> list[tuple[str, bytes]]:
    now_ms = house.clock.wall_ms()
    with house.system.store.snapshot() as snapshot:
        return [
            (each.topic, each.payload) for _, each in retained_of(snapshot, house.application, filter, now_ms)
        ]


@pytest.mark.parametrize(
    ("filter", "selected"),
    [
        ("a/b", ["a/b"]),
        ("a/+", ["a/", "a/b"]),
        ("a/#", ["a", "a/", "a/b", "a/b/c"]),
        ("+", ["a"]),
        ("+/+", ["a/", "a/b", "/a"]),
        ("#", ["a", "a/", "a/b", "a/b/c", "/a"]),
        ("/+", ["/a"]),
        ("+/b/#", ["a/b", "a/b/c"]),
    ],
)
async def test_a_filter_selects_as_mqtt_says(house: House, filter: str, selected: Sequence[str]) -> None:
    client = Listener("one")
    broker = connect(house, client)
    assert broker.subscribe(house.application, client, filter, Options(0))
    for topic in ("a", "a/", "a/b", "a/b/c", "/a"):
        await publish(house, topic, retain=True)
    assert client.topics == selected
    assert sorted(topic for topic, _ in retained(house, filter)) == sorted(selected)


async def test_a_client_gets_a_message_once_with_the_highest_qos_and_all_identifiers(house: House) -> None:
    client, other = Listener("one"), Listener("two")
    broker = connect(house, client, other)
    broker.subscribe(house.application, client, "a/+", Options(1, id=7))
    broker.subscribe(house.application, client, "a/#", Options(2, id=9))
    broker.subscribe(house.application, client, "b", Options(2))
    broker.subscribe(house.application, other, "a/b", Options(0))
    await publish(house, "a/b", qos=1)
    await publish(house, "a/b", qos=2)
    assert [(qos, sorted(ids)) for _, _, qos, ids, _ in client.got] == [(1, [7, 9]), (2, [7, 9])]
    assert [(qos, ids) for _, _, qos, ids, _ in other.got] == [(0, ()), (0, ())]


async def test_new_options_replace_the_old_ones_and_unsubscribing_ends_it(house: House) -> None:
    client = Listener("one")
    broker = connect(house, client)
    assert broker.subscribe(house.application, client, "a/b", Options(0))
    assert not broker.subscribe(house.application, client, "a/b", Options(1))
    await publish(house, "a/b", qos=2)
    assert broker.unsubscribe(house.application, client, "a/b")
    assert not broker.unsubscribe(house.application, client, "a/b")
    assert not broker.unsubscribe(house.application, client, "a/b/c")
    await publish(house, "a/b", qos=2)
    assert [qos for _, _, qos, _, _ in client.got] == [1]


async def test_no_local_leaves_out_the_own_messages(house: House) -> None:
    client, other = Listener("one"), Listener("two")
    broker = connect(house, client, other)
    broker.subscribe(house.application, client, "a", Options(0, no_local=True))
    broker.subscribe(house.application, other, "a", Options(0))
    await publish(house, "a", b"1", by=client)
    await publish(house, "a", b"2", by=other)
    assert [payload for _, payload, *_ in client.got] == [b"2"]
    assert [payload for _, payload, *_ in other.got] == [b"1", b"2"]


async def test_the_members_of_a_shared_subscription_take_turns(house: House) -> None:
    one, two, three, alone = (Listener(name) for name in ("one", "two", "three", "alone"))
    broker = connect(house, one, two, three, alone)
    for member in (one, two, three):
        broker.subscribe(house.application, member, "$share/crew/jobs/+", Options(1))
    broker.subscribe(house.application, alone, "jobs/#", Options(0))
    two.room = False
    for number in range(6):
        await publish(house, f"jobs/{number}", qos=1)
    assert sorted(one.topics + three.topics) == [f"jobs/{number}" for number in range(6)]
    assert (len(one.got), len(three.got), len(alone.got)) == (3, 3, 6)
    for member in (one, three):
        assert broker.unsubscribe(house.application, member, "$share/crew/jobs/+")
    await publish(house, "jobs/7", qos=1)
    assert two.topics == ["jobs/7"], "a member without room is better than none"


async def test_a_topic_that_begins_with_a_dollar_is_reserved(house: House) -> None:
    for topic in ("$SYS/x", "losant/x", "trunkline/x", "", "a/+", "a\x00"):
        with pytest.raises(Invalid, match="topic"):
            await publish(house, topic)


async def test_messages_of_other_applications_and_workflows(house: House, tmp_path: Path) -> None:
    client = Listener("one")
    broker = connect(house, client)
    broker.subscribe(house.application, client, "#", Options(0))
    async with running_house(tmp_path / "other") as other:
        await publish(other, "a")
    flow = house.system.ids.new(house.clock.wall_ms())
    await house.system.ask(
        Ref("publisher", house.application, flow),
        PublishInRun(topic="a/b", message="öffnen", origin=Origin(flow.hex(), "flow")),
    )
    assert client.got == [("a/b", "öffnen".encode(), 0, (), False)]


async def test_a_second_connection_with_the_same_key_ends_the_first(house: House) -> None:
    first, second = Listener("same"), Listener("same")
    broker = connect(house, first, second)
    assert (first.ended, second.ended) == (ClientEnd.TAKEN_OVER, None)
    broker.disconnect(house.application, first)
    assert list(broker.clients_of(house.application).values()) == [second]
    broker.disconnect(house.application, second)
    assert len(broker) == 0


async def test_the_last_retained_message_of_a_topic_is_kept_also_over_a_restart(tmp_path: Path) -> None:
    async with running_house(tmp_path / "data") as house:
        application = house.application
        await publish(house, "a/b", b"1", retain=True)
        await publish(house, "a/b", b"2", retain=True, qos=1, properties={"user_property": [("k", "v")]})
        await publish(house, "a/c", b"3", retain=True)
        await publish(house, "a/c", b"", retain=True)
        await publish(house, "a/d", b"not retained")
        await publish(house, "ü" * 230, b"long", retain=True)
        await publish(house, "ü" * 229 + "v", b"long too", retain=True)
    async with running_house(tmp_path / "data") as house:
        house.application = application
        assert retained(house, "a/#") == [("a/b", b"2")]
        assert sorted(retained(house)) == [
            ("a/b", b"2"),
            ("ü" * 229 + "v", b"long too"),
            ("ü" * 230, b"long"),
        ]
        with house.system.store.snapshot() as snapshot:
            ((_, found),) = retained_of(snapshot, application, "a/b", house.clock.wall_ms())
        assert (found.qos, found.properties) == (1, {"user_property": [("k", "v")]})


async def test_a_subscription_that_comes_before_the_commit_gets_the_message(house: House) -> None:
    """Its snapshot of retained messages does not have it yet."""
    client = Listener("one")
    broker = connect(house, client)
    message = Publication("a", b"x", 1, publisher=b"publisher...")
    pending = house.system.begin(
        Ref("publisher", house.application, b"publisher..."),
        PublishFromClient(publication=message, retain=True, origin=None),
    )
    assert pending is not None
    assert pending.group is not None
    broker.subscribe(house.application, client, "a", Options(1))
    assert retained(house) == []
    await publish(house, "other")
    assert client.topics == ["a"]
    assert retained(house) == [("a", b"x")]


async def test_an_expired_retained_message_is_not_found(house: House) -> None:
    await publish(house, "a", b"1", retain=True, expires_ms=house.clock.wall_ms() + 1000)
    assert retained(house) == [("a", b"1")]
    house.clock.pass_s(1)
    assert retained(house) == []


async def test_retained_messages_are_bounded_in_number_and_bytes(tmp_path: Path) -> None:
    limits = Limits.off().override({"retained_messages_max": 2, "retained_bytes_max": 1000})
    async with running_house(tmp_path / "data", limits=limits) as house:
        await publish(house, "a", b"1", retain=True)
        await publish(house, "b", b"2", retain=True)
        with pytest.raises(StorageFull, match="2 retained messages"):
            await publish(house, "c", b"3", retain=True)
        await publish(house, "a", b"4", retain=True)
        await publish(house, "b", b"", retain=True)
        with pytest.raises(StorageFull, match="1000 bytes"):
            await publish(house, "c", b"5" * 1000, retain=True)
        await publish(house, "c", b"6", retain=True)
        assert retained(house) == [("a", b"4"), ("c", b"6")]


async def test_a_will_is_published_unless_the_client_says_goodbye(house: House) -> None:
    client = Listener("one")
    broker = connect(house, client)
    broker.subscribe(house.application, client, "#", Options(1))
    for publish_will in (False, True, True):
        ref = Ref("publisher", house.application, b"willing.....")
        will = Publication("gone", b"w", 1)
        await house.system.ask(ref, ConnectClient(will=will, retain_will=True, origin=None))
        await house.system.ask(ref, DisconnectClient(publish_will=publish_will))
        await house.system.ask(ref, DisconnectClient(publish_will=True))
    assert client.got == [("gone", b"w", 1, (), False)] * 2
    assert retained(house) == [("gone", b"w")]


async def test_wills_of_connected_clients_are_published_at_the_next_start(tmp_path: Path) -> None:
    async with running_house(tmp_path / "data") as house:
        application = house.application
        await publish(house, "before", b"x", retain=True)
        for number in range(3):
            ref = Ref("publisher", application, b"client%d....." % number)
            will = Publication(f"gone/{number}", b"w")
            delay_s = 60 if number == 2 else 0
            connect = ConnectClient(will=will, retain_will=True, origin=None, delay_s=delay_s)
            await house.system.ask(ref, connect)
        back = ConnectClient(will=None, retain_will=False, origin=None, is_resumed=True)
        await house.system.ask(ref, back)
    async with running_house(tmp_path / "data") as house:
        house.application = application
        assert retained(house, "gone/+") == [("gone/0", b"w"), ("gone/1", b"w")]
        with house.system.store.snapshot() as snapshot:
            wills = snapshot.count(keys.MESSAGES, keys.wills_prefix(application), None)
        assert wills == 0


async def test_a_will_that_cannot_be_retained_is_gone_after_the_next_start(tmp_path: Path) -> None:
    """As it may be in the store since an earlier version: it was kept, and refused each login of its client."""
    limits = Limits.off().override({"retained_messages_max": 1})
    async with running_house(tmp_path / "data", limits=limits) as house:
        ref = Ref("publisher", house.application, b"willing.....")
        await publish(house, "full", b"x", retain=True)
        await house.system.ask(
            ref, ConnectClient(will=Publication("gone", b"w"), retain_will=True, origin=None)
        )
    async with running_house(tmp_path / "data", limits=limits) as house:
        with house.system.store.snapshot() as snapshot:
            assert snapshot.get(keys.MESSAGES, keys.will_key(ref.parent, ref.id)) is None
        await house.system.ask(ref, ConnectClient(will=None, retain_will=False, origin=None))
