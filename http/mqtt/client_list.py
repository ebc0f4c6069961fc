"""The MQTT clients of an application that are connected, as they are shown.

Reads memory, and of clients with a session the head of its queue. Does not own who is connected
(`actors/data/topics/broker.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.data.topics.broker import Broker
from trunkline.actors.data.topics.messages import MqttClientList, MqttClientPage, MqttClientView, MqttRefusal
from trunkline.actors.data.topics.queues import Head, head_of
from trunkline.http.mqtt.session import VERSIONS, MqttSession

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.system import System


def list_clients(system: System, application: bytes, query: MqttClientPage) -> MqttClientList:
    """A page of the connected clients, those first that connected last."""
    clients = system.component(Broker).clients_of(application)
    begin = query.page * query.per_page
    page = list(clients.values())[::-1][begin : begin + query.per_page]
    with system.store.snapshot() as snapshot:
        items = [
            _view(each, Head() if each.session is None else head_of(snapshot, application, each.session))
            for each in page
            if isinstance(each, MqttSession)
        ]
    return MqttClientList(
        items=items,
        count=len(items),
        total_count=len(clients),
        page=query.page,
        per_page=query.per_page,
        application_id=application.hex(),
    )


def _view(session: MqttSession, head: Head) -> MqttClientView:
    """What is shown of a client; `head` is that of its queue."""
    received, sent = session.counts
    last = session.last_refusal
    device = None if session.client is None else session.client.device
    return MqttClientView(
        client_id=session.client_id,
        device_id=None if device is None else device.hex(),
        version=VERSIONS[session.version],
        state="connected",
        transport=session.transport,
        address=session.address,
        connected=iso(session.connected_ms),
        packets_received=received,
        messages_sent=sent,
        unacknowledged=session.outgoing.under_way,
        waiting=session.outgoing.waiting,
        has_session=session.session is not None,
        queued=head.number,
        dropped=head.dropped,
        refused=session.refused,
        last_refusal=None if last is None else MqttRefusal(last.code, last.message, iso(last.time_ms)),
    )
