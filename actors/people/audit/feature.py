"""What the audit log adds to the server."""

from __future__ import annotations

from typing import Final

from trunkline.actors.core.records.feature import Feature
from trunkline.actors.people.audit import messages, reads
from trunkline.actors.people.audit.actor import AuditLog

FEATURE: Final = Feature(
    kinds=(messages.AUDIT_ENTRY,),
    actors=(AuditLog,),
    readers={
        messages.GetAuditLog: reads.get_audit_log,
        messages.ListAuditLogs: reads.list_audit_logs,
        messages.GetOwnAuditLog: reads.get_own_audit_log,
        messages.ListOwnAuditLogs: reads.list_own_audit_logs,
    },
)
