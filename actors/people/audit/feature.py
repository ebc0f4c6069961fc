"""What the audit log adds to the server."""

from __future__ import annotations

from typing import Final

from trunkline.actors.core.records.expiry import Expiry
from trunkline.actors.core.records.feature import Feature
from trunkline.actors.people.audit import messages, reads
from trunkline.actors.people.audit.actor import AuditLog
from trunkline.actors.people.audit.retention import search_audit_logs

FEATURE: Final = Feature(
    expiries=(Expiry(search_audit_logs, {messages.ExpireEntries: ("auditEntry",)}, of_server=True),),
    kinds=(messages.AUDIT_ENTRY,),
    actors=(AuditLog,),
    readers={
        messages.GetAuditLog: reads.get_audit_log,
        messages.GetOwnAuditLog: reads.get_own_audit_log,
    },
    kind_readers={
        messages.ListAuditLogs: reads.list_audit_logs,
        messages.ListOwnAuditLogs: reads.list_own_audit_logs,
    },
)
