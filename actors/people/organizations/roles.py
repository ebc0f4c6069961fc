"""Roles: what the members of an organization may do. This is the one place that says it.

A role allows operations up to a level, and each level includes those below it. The level of an operation follows from
its access (`read` or `write`), unless `LEVELS` names the operation or its resource. The owner of an application has
every level in it; tokens of applications and of devices are restricted by their scopes and keys, not by roles.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final, Literal

Role = Literal["admin", "edit", "collaborate", "view", "none"]
ResourceRole = Literal["collaborate", "view", "none"]
"""The roles that a member can have in single applications and dashboards."""


class Level(IntEnum):
    """What an operation needs. `MEMBER`: to belong to the organization, with any role."""

    MEMBER = 0
    READ = 1
    WRITE = 2
    MANAGE = 3
    ADMINISTER = 4


ROLES: Final[Mapping[Role, Level]] = {
    "none": Level.MEMBER,
    "view": Level.READ,
    "collaborate": Level.WRITE,
    "edit": Level.MANAGE,
    "admin": Level.ADMINISTER,
}
"""The highest level of each role."""

ROLE_OF: Final[Mapping[Level, Role]] = {level: role for role, level in ROLES.items()}

MEANINGS: Final[Mapping[Level, str]] = {
    Level.MEMBER: "See the organization itself, without its members, and leave it",
    Level.READ: "Read everything in its applications and dashboards, the counts of the organization, and its members",
    Level.WRITE: "Change everything in its applications and dashboards, but for what the next levels need",
    Level.MANAGE: "Create and delete applications, and dashboards of the organization itself; create, change and "
    "delete access keys, API tokens and certificates, which stay valid when a member leaves",
    Level.ADMINISTER: "Change and delete the organization, manage members and invitations, transfer resources, "
    "read the audit log",
}

LEVELS: Final[Mapping[str, Level]] = {
    "application.delete": Level.MANAGE,
    "applications.post": Level.MANAGE,
    "applicationApiToken.*": Level.MANAGE,
    "applicationApiTokens.*": Level.MANAGE,
    "applicationCertificate.*": Level.MANAGE,
    "applicationCertificateAuthorities.*": Level.MANAGE,
    "applicationCertificateAuthority.*": Level.MANAGE,
    "applicationCertificates.*": Level.MANAGE,
    "applicationKey.*": Level.MANAGE,
    "applicationKeys.*": Level.MANAGE,
    "auditLog.get": Level.ADMINISTER,
    "auditLogs.get": Level.ADMINISTER,
    "org.*": Level.ADMINISTER,
    "org.get": Level.MEMBER,
    "org.pendingInvites": Level.ADMINISTER,
    "org.removeMember": Level.MEMBER,
}
"""The operations that need another level than their access says. `<resource>.*` are the writes of a resource.

Any member may call `org.removeMember` to leave; removing somebody else needs `ADMINISTER`."""


def level_of(operation: str, access: str) -> Level:
    """The level that an operation needs. `access` is read or write (or none, for operations without a token)."""
    if operation in LEVELS:
        return LEVELS[operation]
    if access != "write":
        return Level.READ
    return LEVELS.get(f"{operation.partition('.')[0]}.*", Level.WRITE)
