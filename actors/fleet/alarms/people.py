"""Who is told of alarms: the addresses of users and of groups, as they are now. Pure reads.

A user is told only as long as that user may read the application: its owner, or a member of the organization that owns
it, with a role that can. So somebody who leaves is told no more, with the next attempt, whatever rules and groups say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.kinds import APPLICATION, USER
from trunkline.actors.core.records.source import Values
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.fleet.alarms.kind import ALARM_GROUP
from trunkline.actors.people.organizations.membership import find_membership
from trunkline.actors.people.organizations.roles import Level


def address_of(source: Values, application: bytes, user: str) -> str | None:
    """The address of a user who may read an application; None of anybody else."""
    id, owned = bytes.fromhex(user), records.doc_of(source, APPLICATION, ROOT, application)
    account = records.doc_of(source, USER, ROOT, id)
    if owned is None or account is None:
        return None
    owner = bytes.fromhex(owned["ownerId"])
    if owner != id:
        membership = find_membership(source, owner, id)
        if membership is None or membership.application_level(application) < Level.READ:
            return None
    return str(account["email"])


def told_of(source: Values, application: bytes, to: Doc) -> list[str]:
    """The addresses of a group, or those that a step names itself."""
    users = (address_of(source, application, user) for user in to.get("userIds", ()))
    return list(dict.fromkeys([*to.get("emails", ()), *(each for each in users if each is not None)]))


def receivers(source: Values, application: bytes, steps: Iterable[Doc]) -> list[str]:
    """Those whom steps are to reach now: addresses of mail, and URLs, each once."""
    return list(dict.fromkeys(_receivers(source, application, steps)))


def _receivers(source: Values, application: bytes, steps: Iterable[Doc]) -> Iterator[str]:
    for step in steps:
        yield from told_of(source, application, step)
        for id in step.get("groupIds", ()):
            group = records.doc_of(source, ALARM_GROUP, application, bytes.fromhex(id))
            if group is not None:
                yield from told_of(source, application, group)
        if "url" in step:
            yield step["url"]
