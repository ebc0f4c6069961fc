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
from trunkline.http.calls.route import ME_PATH, ORG_PATH, LinkTemplates
from trunkline.http.calls.verbs import get, list_of

_PATH = ORG_PATH + "/audit-logs"
_OWN_PATH = ME_PATH + "/audit-logs"
_OWN_LINKS = {"self": f"{_OWN_PATH}/{{auditLogId}}"}
_LINKS = {"self": f"{_PATH}/{{auditLogId}}", "org": ORG_PATH}

ROUTES = (
    list_of(
        _PATH,
        "auditLogs.get",
        "List who changed what in an organization",
        ListAuditLogs,
        AuditLogView,
        AuditPage,
        area="organization",
        links=LinkTemplates({"self": _PATH, "org": ORG_PATH}, _LINKS),
    ),
    get(
        _PATH + "/{auditLogId}",
        "auditLog.get",
        "Get one entry of the audit log of an organization",
        GetAuditLog,
        AuditLogView,
        area="organization",
        links=LinkTemplates(_LINKS),
    ),
    list_of(
        _OWN_PATH,
        "userAuditLogs.get",
        "List who changed what in the applications of the user",
        ListOwnAuditLogs,
        AuditLogView,
        AuditPage,
        area="user",
        links=LinkTemplates({"self": _OWN_PATH}, _OWN_LINKS),
    ),
    get(
        _OWN_PATH + "/{auditLogId}",
        "userAuditLog.get",
        "Get one entry of the audit log of the user's applications",
        GetOwnAuditLog,
        AuditLogView,
        area="user",
        links=LinkTemplates(_OWN_LINKS),
    ),
)
