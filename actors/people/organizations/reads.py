"""Reads of organizations. Pure reads of a snapshot."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Kind
from trunkline.actors.core.records.kinds import APPLICATION, USER
from trunkline.actors.core.records.page import all_of, envelope, glob_match
from trunkline.actors.core.records.reading import SCAN_INLINE_MAX, Reading
from trunkline.actors.core.records.revision import Found
from trunkline.actors.core.records.shape import Shape
from trunkline.actors.core.records.summary import chosen_counts
from trunkline.actors.core.values.answer_size import AnswerSize
from trunkline.actors.core.values.errors import NotFound
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.people.organizations.invitations import INVITE
from trunkline.actors.people.organizations.membership import (
    MEMBER,
    ORGANIZATION,
    Membership,
    applications_of,
    find_membership,
    memberships,
)
from trunkline.actors.people.organizations.messages import GetAccess, GetOrg, ListOrgs, OrgView
from trunkline.actors.people.organizations.roles import ROLE_OF, Level
from trunkline.store import keys

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot

Shown = dict[str, Any]
Counted = Mapping[str, Kind]
"""The fields of an application's summary, each with the kind of records that it counts."""

ADMINISTRATORS_TOLD: Final = 3
_ORG = Shape(OrgView)
_MEMBER_BYTES, _ROLE_BYTES = 300, 60
"""About the size of a member in an answer, and of a role in a single resource."""


def get_org(counted: Counted, reading: Reading, message: GetOrg) -> Shown:
    """One organization."""
    found = records.find(reading.snapshot, ORGANIZATION, ROOT, message.org)
    if found is None:
        raise missing(message.org)
    membership = find_membership(reading.snapshot, message.org, message.user)
    query = message.query
    reading.check_time(is_long=_work(reading.snapshot, message.org) > SCAN_INLINE_MAX)
    is_shown = chosen_counts(counted, query.summary_include, query.summary_exclude)
    return _show(counted, reading, found, membership, is_shown, reading.answer_size())


def get_access(reading: Reading, message: GetAccess) -> Shown:
    """The role of a caller in an application or with a dashboard, and a few administrators who can give another one."""
    org = records.find(reading.snapshot, ORGANIZATION, ROOT, message.owner)
    if org is None:
        return {"role": "owner"}
    reading.check_time(is_long=records.total(reading.snapshot, MEMBER, message.owner) > SCAN_INLINE_MAX)
    members = records.scan(reading.snapshot, MEMBER, message.owner)
    admins = islice((id for id, doc in members if doc["role"] == "admin"), ADMINISTRATORS_TOLD)
    users = [records.find(reading.snapshot, USER, ROOT, id) for id in admins]
    return {
        "role": ROLE_OF[Level(message.level)],
        "organizationName": org.doc["name"],
        "administrators": [user.doc["email"] for user in users if user is not None],
    }


def list_orgs(counted: Counted, reading: Reading, message: ListOrgs) -> Shown:
    """A page of the organizations that a user belongs to; they are few, so they are sorted as they are read."""
    query, snapshot = message.query, reading.snapshot
    match = all_of(glob_match(query, query.filter_field))
    found: list[tuple[Found, Membership]] = []
    for membership in memberships(snapshot, message.user):
        org = records.find(snapshot, ORGANIZATION, ROOT, membership.org)
        if org is not None and (match is None or match(org.doc)):
            found.append((org, membership))
    by_id = query.sort_field == "id"
    found.sort(
        key=lambda each: (b"" if by_id else keys.sortable(each[0].doc[query.sort_field]), each[0].id),
        reverse=query.sort_direction == "desc",
    )
    skip = query.page * query.per_page
    chosen = found[skip : skip + query.per_page]
    reading.check_time(is_long=sum(_work(snapshot, org.id) for org, _ in chosen) > SCAN_INLINE_MAX)
    is_shown = chosen_counts(counted, query.summary_include, query.summary_exclude)
    size = reading.answer_size()
    items = [_show(counted, reading, org, membership, is_shown, size) for org, membership in chosen]
    return envelope("orgs", items, len(found), query)


def missing(org: bytes) -> NotFound:
    """The error for an organization that does not exist."""
    return NotFound(f"There is no organization {org.hex()}.")


def _work(snapshot: Snapshot, org: bytes) -> int:
    """About how many records are read to show an organization."""
    return records.total(snapshot, MEMBER, org) + 10 * records.total(snapshot, APPLICATION, ROOT, org.hex())


def _show(
    counted: Counted,
    reading: Reading,
    found: Found,
    membership: Membership | None,
    is_shown: Callable[[str], bool],
    size: AnswerSize,
) -> Shown:
    """Return an organization as a member sees it, or somebody who has just left it."""
    snapshot, id = reading.snapshot, found.id.hex()
    shown: Shown = {"id": id, "orgId": id, **_ORG.of(found.doc)}
    if membership is not None and membership.level >= Level.READ:
        shown["members"] = _members(snapshot, found.id, size)
    if membership is not None:
        applications = applications_of(snapshot, membership)
        summary = {"appCount": len(applications), "memberCount": records.total(snapshot, MEMBER, found.id)}
        summary["pendingInviteCount"] = records.total(snapshot, INVITE, found.id)
        for field, kind in counted.items():
            if is_shown(field):
                summary[field] = sum(records.total(snapshot, kind, each) for each in applications)
        shown["summary"] = {field: count for field, count in summary.items() if is_shown(field)}
    return shown | {"_etag": found.revision, "_type": "org"}


def _members(snapshot: Snapshot, org: bytes, size: AnswerSize) -> list[Shown]:
    """The members of an organization, in the order of their ids. Raises `PayloadTooLarge`."""
    shown = []
    for id, member in records.scan(snapshot, MEMBER, org):
        user = records.find(snapshot, USER, ROOT, id)
        if user is not None:
            roles = len(member["applicationRoles"]) + len(member["dashboardRoles"])
            size.add(_MEMBER_BYTES + roles * _ROLE_BYTES)
            shown.append(
                {
                    "userId": id.hex(),
                    "email": user.doc["email"],
                    "role": member["role"],
                    "applicationRoles": member["applicationRoles"],
                    "dashboardRoles": member["dashboardRoles"],
                    "twoFactorAuthEnabled": bool(user.doc.get("twoFactorAuthEnabled")),
                    **{name: user.doc[name] for name in ("firstName", "lastName") if user.doc.get(name)},
                }
            )
    return shown
