"""What the author of a workflow must be allowed to do, for a run to be told what its trigger tells.

A run is told of a device, an event, a row or a file only if the author could read it by calling the operations of its
type (`workflows/flows/triggers.py`). What
somebody sends to workflows (presses of buttons, requests to webhooks and endpoints, messages of brokers) is for them,
and no operation reads it. The right is asked for when the run begins: what it is told is stored with its cause.
"""

from __future__ import annotations

from typing import Any, Final

from trunkline.actors.core.records.mandate import Mandates
from trunkline.actors.core.values.errors import Forbidden
from trunkline.actors.people.organizations.mandates import Authors
from trunkline.actors.workflows.flows.triggers import TYPES
from trunkline.actors.workflows.triggers.intake import TriggerRecord

Asked = tuple[tuple[str, str], ...]

_PRIVATE_FILE: Final = (("privateFile.get", "read"),)


def rights_of_trigger(record: TriggerRecord) -> Asked:
    """What the authors of a run must be allowed to read for its trigger."""
    if record.type == "appFile" and _told(record.cause.data, "file", "isPrivate"):
        return _PRIVATE_FILE
    if record.type == "flowError" and _told(record.cause.data, "errorInfo", "flowId") == record.flow.hex():
        return ()  # what its own runs were told
    known = TYPES.get(record.type)
    return () if known is None else tuple((operation, "read") for operation in known.reads)


def refusal_of(authors: Authors, record: TriggerRecord, mandates: Mandates) -> str | None:
    """Why a run may not be told what started it; None if it may."""
    try:
        for operation, access in rights_of_trigger(record):
            authors.check(record.application, mandates, operation, access)
    except Forbidden as refusal:
        return f"{refusal.message} So the workflow is not told what started it."
    return None


def _told(data: Any, *names: str) -> Any:
    for name in names:
        data = data.get(name) if isinstance(data, dict) else None
    return data
