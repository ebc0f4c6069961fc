"""What every server has: users and applications, and the reads of plain resources."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trunkline.actors.core.contents.contents import Contents
from trunkline.actors.core.contents.downloads import Downloads
from trunkline.actors.core.contents.signatures import Signatures
from trunkline.actors.core.outgoing.mail import Mail
from trunkline.actors.core.outgoing.sendgrid import SendGrid
from trunkline.actors.core.records.expiry import Expiry
from trunkline.actors.core.records.feature import Feature, Start
from trunkline.actors.core.records.kept_answers import search_answers
from trunkline.actors.core.records.kinds import APPLICATION, USER
from trunkline.actors.core.records.messages import GetRecord, ListRecords
from trunkline.actors.core.records.resource import get_record, list_records
from trunkline.actors.core.scripts.pool import ScriptPool


def _parts(start: Start) -> Iterator[object]:
    system, settings, limits = start.system, start.settings, start.system.limits
    yield ScriptPool(limits)
    yield Mail(settings, system.store.outbox, timeout_s=limits.outgoing_timeout_s)
    yield SendGrid(settings.sendgrid_url, timeout_s=limits.outgoing_timeout_s)
    yield Contents(system, Signatures(start.secret))
    yield Downloads(system)


FEATURES: Final = (
    Feature(
        parts=_parts,
        first_tasks=(ScriptPool,),
        expiries=(Expiry(search_answers, {}),),
        kinds=(USER, APPLICATION),
        resource_readers={GetRecord: get_record, ListRecords: list_records},
    ),
)
