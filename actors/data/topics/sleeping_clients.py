"""The MQTT clients without a connection whose sessions wait for them, as they are listed: first those that end first.

Reads the index of sessions by the time of their end, and of those on the page their records and the heads of their
queues. Does not own when a session ends (`session_actor.py`).
"""

from __future__ import annotations

from itertools import islice

from trunkline.actors.core.records import records
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.data.topics.messages import ListSleepingClients, MqttClientList, MqttClientView
from trunkline.actors.data.topics.queues import head_of
from trunkline.actors.data.topics.session_records import SessionRecord, decode_session
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.store import keys
from trunkline.store.snapshot import Snapshot


def list_sleeping_clients(reading: Reading, message: ListSleepingClients) -> MqttClientList:
    """A page of the clients, and how many there are: all keys of the index are counted, as there may be many."""
    reading.check_time(is_long=True)
    snapshot, application, query = reading.snapshot, message.application, message.query
    prefix = keys.away_prefix(application)
    index = snapshot.keys(keys.MESSAGES, prefix, keys.prefix_end(prefix))
    skipped = sum(1 for _ in islice(index, query.page * query.per_page))
    clients = [keys.away_of_key(bytes(key))[1] for key in islice(index, query.per_page)]
    total = skipped + len(clients) + sum(1 for _ in index)
    items = []
    for client in clients:
        raw = snapshot.get(keys.MESSAGES, keys.session_key(application, client))
        if raw is not None:
            items.append(_view(snapshot, application, client, decode_session(bytes(raw))))
    return MqttClientList(
        items=items,
        count=len(items),
        total_count=total,
        page=query.page,
        per_page=query.per_page,
        application_id=application.hex(),
    )


def _view(snapshot: Snapshot, application: bytes, client: bytes, record: SessionRecord) -> MqttClientView:
    head = head_of(snapshot, application, record.id)
    is_device = records.exists(snapshot, DEVICE, application, client)
    return MqttClientView(
        client_id=record.client_id,
        device_id=client.hex() if is_device else None,
        state="sleeping",
        has_session=True,
        queued=head.number,
        dropped=head.dropped,
        disconnected=None if record.away_ms is None else iso(record.away_ms),
        ends=None if record.ends_ms is None else iso(record.ends_ms),
        subscriptions=len(record.filters),
    )
