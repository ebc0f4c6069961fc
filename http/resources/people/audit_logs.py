"""The audit logs of organizations, and of the applications of the current user."""

from __future__ import annotations

from trunkline.actors.people.audit.messages import (
    AuditLogView,
    AuditPage,
    GetAuditLog,
    GetOwnAuditLog,
    ListAuditLogs,
    ListOwnAuditLogs,
)
from trunkline.http.calls.route import ME_PATH, ORG_PATH, LinkTemplates, Route

_PATH = ORG_PATH + "/audit-logs"
_OWN_PATH = ME_PATH + "/audit-logs"
_OWN_LINKS = {"self": f"{_OWN_PATH}/{{auditLogId}}"}
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
    Route(
        method="GET",
        path=_OWN_PATH,
        operation="userAuditLogs.get",
        summary="List who changed what in the applications of the user",
        message=ListOwnAuditLogs,
        query=AuditPage,
        reply=("list", AuditLogView),
        area="user",
        links=LinkTemplates({"self": _OWN_PATH}, _OWN_LINKS),
    ),
    Route(
        method="GET",
        path=_OWN_PATH + "/{auditLogId}",
        operation="userAuditLog.get",
        summary="Get one entry of the audit log of the user's applications",
        message=GetOwnAuditLog,
        reply=AuditLogView,
        area="user",
        links=LinkTemplates(_OWN_LINKS),
    ),
)
