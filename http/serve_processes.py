"""Serving as one of several processes: what others pass on, and clients where this process listens.

With one partition the others are doors, and this process listens on nothing but their channels. With several, each
owner serves clients as well, and passes on what is for another partition.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import trio

from trunkline.actors.core.runtime.loop_watch import LoopWatch
from trunkline.http.app import layered
from trunkline.http.calls.dispatch import Dispatcher
from trunkline.http.engines import (
    Served,
    engine_of,
    mqtt_listeners,
    mqtt_protocol,
    run_engine,
    use_domains,
)
from trunkline.http.hosting.sockets import Sockets
from trunkline.http.hosting.unix_sockets import bound_in
from trunkline.http.mqtt.service import MqttService
from trunkline.http.processes.channel import SOCKET_NAME
from trunkline.http.processes.neighbours import Neighbours
from trunkline.http.processes.owner import Answers, Doors
from trunkline.http.processes.partition_front import PartitionFront, Routing
from trunkline.http.processes.peers import answered
from trunkline.http.processes.placed_mqtt import PlacedMqtt
from trunkline.http.wire.accepting import Listener
from trunkline.http.wire.byte_session import ByteProtocol
from trunkline.http.wire.connection_counts import ConnectionCounts
from trunkline.http.wire.engine import Engine


async def serve_processes(
    nursery: trio.Nursery,
    served: Served,
    sockets: Sockets | None,
    neighbours: Neighbours | None,
    trigger: Callable[[], Awaitable[None]],
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve what other processes pass on, and clients if there are sockets, until the trigger; then cancel the rest."""
    dispatcher, pages, settings, config = served
    system = dispatcher.system
    counts: Callable[[], ConnectionCounts] = ConnectionCounts
    app, fast_path, hosts = layered(dispatcher, pages, settings, lambda: counts())
    front: Any = app
    fast_front: Any = fast_path
    if neighbours is not None:
        places = neighbours.places
        front = PartitionFront(app, fast_path, Routing(places, hosts), places.own, neighbours.doors)
        fast_front = front
        trigger = partial(_leave_after, trigger, neighbours, nursery)
    lap = system.component(LoopWatch).lap
    protocol = mqtt_protocol(dispatcher)
    if neighbours is not None:
        protocol = _placed_mqtt(dispatcher, neighbours)
    doors = Doors(
        Answers(front, fast_front),
        Answers(app, fast_path),
        protocol,
        answered=partial(answered, system),
        logs_access=settings.access_log,
        lap=lap,
        are_elsewhere=settings.cluster_nats is not None,
    )
    await nursery.start(doors.run)
    nursery.start_soon(doors.follow_certificates, hosts.certificates, lambda: system.journal.record_changes)
    config.bind = []
    listeners: list[Listener] = []
    if sockets is not None:
        use_domains(hosts, settings, config)
        config.bind = [f"fd://{sockets.http.detach()}"]
        listeners += mqtt_listeners(protocol, sockets.mqtt)
    with bound_in(system.store.directory.path, SOCKET_NAME) as sock:
        listeners.append(Listener(sock, tls=False, passed_on=doors.protocol_of))
        engine = engine_of(front, fast_front, dispatcher, settings, config, listeners)
        counts = partial(_all_counts, engine, doors)
        await run_engine(nursery, partial(engine.serve, trigger), task_status)


def _placed_mqtt(dispatcher: Dispatcher, neighbours: Neighbours) -> ByteProtocol:
    """What is spoken on connections for MQTT whose clients may belong to another partition."""
    service = dispatcher.system.component(MqttService)
    service.session_for = partial(
        PlacedMqtt, service, service.session_for, neighbours.places, neighbours.passages
    )
    return mqtt_protocol(dispatcher)


def _all_counts(engine: Engine, doors: Doors) -> ConnectionCounts:
    """What is counted of the connections of this process, and of its doors."""
    total = ConnectionCounts()
    total.add(engine.counts())
    total.add(doors.counts())
    return total


async def _leave_after(
    trigger: Callable[[], Awaitable[None]], neighbours: Neighbours, nursery: trio.Nursery
) -> None:
    await trigger()
    nursery.start_soon(neighbours.leave)
