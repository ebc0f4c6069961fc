"""The audit log of an organization."""

from __future__ import annotations

from trunkline.actors.audit.messages import AuditLogView, AuditPage, GetAuditLog, ListAuditLogs
from trunkline.http.calls.route import ORG_PATH, LinkTemplates, Route

_PATH = ORG_PATH + "/audit-logs"
_LINKS = {"self": f"{_PATH}/{{auditLogId}}", "org": ORG_PATH}

ROUTES = (
    Route(
        method="GET",
        path=_PATH,
        operation="auditLogs.get",
        summary="List who changed what in an organization",
        message=ListAuditLogs,
        query=AuditPage,
        reply=("list", AuditLogView),
        area="organization",
        links=LinkTemplates({"self": _PATH, "org": ORG_PATH}, _LINKS),
    ),
    Route(
        method="GET",
        path=_PATH + "/{auditLogId}",
        operation="auditLog.get",
        summary="Get one entry of the audit log of an organization",
        message=GetAuditLog,
        reply=AuditLogView,
        area="organization",
        links=LinkTemplates(_LINKS),
    ),
)
