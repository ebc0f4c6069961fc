"""What integrations add to the server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trunkline.actors.connections.credentials.resource import CREDENTIAL
from trunkline.actors.connections.integrations.actor import Integration
from trunkline.actors.connections.integrations.connections import Connections
from trunkline.actors.connections.integrations.resource import INTEGRATIONS, IntegrationBoard
from trunkline.actors.core.records.feature import Feature, Start
from trunkline.actors.core.records.portable import WithSecrets, portable


def _parts(start: Start) -> Iterator[object]:
    yield IntegrationBoard()
    yield Connections(start.system, private=start.settings.callback_private_networks)


FEATURE: Final = Feature(
    parts=_parts,
    first_tasks=(Connections,),
    moved=(Connections,),
    resources=(INTEGRATIONS,),
    actors=(Integration,),
    portable=(
        portable(
            "Integration",
            INTEGRATIONS,
            created_by="integrations.post",
            more=WithSecrets,
            named={"credentialName": CREDENTIAL},
        ),
    ),
)
