"""What a call may do with the organization, the application and the device that its path names.

What was found out about an organization or an application is kept with the principal, until that is revoked.
"""

from __future__ import annotations

from typing import Final

from trunkline.actors.access import authority
from trunkline.actors.core.values.errors import Forbidden
from trunkline.actors.people.accounts.reach import filters_by_tags, key_admits_address
from trunkline.actors.people.organizations.roles import Level
from trunkline.http.calls.call import Call

_FIND: Final = {
    "application": authority.application_access,
    "org": authority.organization_access,
}
"""How the access to what a path names is found out, by the name of the id."""


def check_resource_access(call: Call) -> None:
    """Raise if the token is not valid for the network address, or gives no access to what the path names.

    Raises too if the organization, the application or the device does not exist. An open stream repeats this check
    whenever something has changed that its token depends on.
    """
    if call.is_anonymous:
        return
    principal, system = call.principal, call.service.system
    if principal.key and not key_admits_address(principal.key, call.request.address):
        raise Forbidden(
            "The access key of this token is not for the network address that the call came from."
        )
    for name in _FIND:
        id = call.ids.get(name)
        if id is not None:
            check_access(call, name, id, call.route.level)
    device = call.ids.get("device")
    if device is not None and principal.kind == "device" and principal.device_id != device:
        with system.store.snapshot() as snapshot:
            authority.check_device(snapshot, principal, device, states=call.route.device == "self")
        if filters_by_tags(principal.key):
            system.revocations.add_subject(principal, device)


def check_access(call: Call, name: str, id: bytes, level: Level) -> None:
    """Raise unless the caller has this level in an application or organization. `name` is `application` or `org`.

    Raises `NotFound` if there is no such record, `Forbidden` if the token does not reach it, or the role of the user
    does not allow the level. For ids of a path the dispatcher has done this already.
    """
    principal, system = call.principal, call.service.system
    access = principal.accesses.get(id)
    if access is None:
        with system.store.snapshot() as snapshot:
            access = principal.accesses[id] = _FIND[name](snapshot, principal, id)
        system.revocations.add_subject(principal, id)
        system.revocations.add_subject(principal, access.owner)
    authority.check_level(access, level, call.route.operation)
