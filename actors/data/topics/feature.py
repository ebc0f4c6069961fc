"""What topics add to the server."""

from __future__ import annotations

from typing import Final

from trunkline.actors.core.records.feature import Feature
from trunkline.actors.data.topics.actor import Publisher
from trunkline.actors.data.topics.broker import Broker
from trunkline.actors.data.topics.expiry_search import ExpirySearch
from trunkline.actors.data.topics.messages import ListSleepingClients
from trunkline.actors.data.topics.session_actor import MqttSessionActor
from trunkline.actors.data.topics.session_sweep import SessionSweep
from trunkline.actors.data.topics.sleeping_clients import list_sleeping_clients
from trunkline.actors.data.topics.wills import Wills

FEATURE: Final = Feature(
    actors=(Publisher, MqttSessionActor),
    parts=lambda start: (
        Broker(start.system),
        ExpirySearch(start.system),
        Wills(start.system),
        SessionSweep(start.system),
    ),
    readers={ListSleepingClients: list_sleeping_clients},
    tasks=(Wills, SessionSweep),
    moved=(Broker, Wills, SessionSweep),
)
