"""Who an MQTT client is that presents an access key or a certificate, and which topics it may use.

A client whose id is that of a device of the application is that device. Nobody has the id of a deleted device: it would
be no device, and still be none when that is restored. Any other client id needs a key that is not restricted to
devices; such a client uses the application's topics and is no device. What a client may do with topics is what its key
or certificate says in `filterType`, `pubTopics` and `subTopics`. Pure reads of a snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Literal

from trunkline.actors.access.authority import Principal, resolve
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.values.errors import Forbidden, Unauthorized
from trunkline.actors.core.values.ids import ROOT, is_id
from trunkline.actors.fleet.devices.record.kind import DELETED_DEVICE, DEVICE
from trunkline.actors.people.accounts.reach import device_filter, key_admits_address
from trunkline.actors.platform.applications.keys import APPLICATION_KEY, active_key
from trunkline.store import keys

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot

DEVICE_SCOPES: Final = frozenset({"all.Device"})
_REFUSED: Final = "The client id, the user name and the password do not fit together."


def principal_of_key(snapshot: Snapshot, client_id: str, key: str, secret: str, address: str) -> Principal:
    """The principal of a client that presents an access key and its secret.

    Raises `Unauthorized`, always with the same sentence, so that the client does not learn which part is wrong.
    """
    found = active_key(snapshot, key, secret)
    if found is None:
        raise Unauthorized(_REFUSED)
    return principal_of_key_id(snapshot, client_id, bytes.fromhex(key[:24]), found.id, address)


def principal_of_key_id(
    snapshot: Snapshot, client_id: str, application: bytes, key_id: bytes, address: str
) -> Principal:
    """The principal of a client whose access key is known already.

    Raises `Unauthorized` if it is not one any more, and `Forbidden` if the client id is that of a deleted device.
    """
    found = records.find_shared(snapshot, APPLICATION_KEY, application, key_id)
    if found is None or found.doc["status"] != "active" or not key_admits_address(found.doc, address):
        raise Unauthorized(_REFUSED)
    device = device_of(snapshot, application, client_id)
    if device is not None:
        claims = {"typ": "device", "sub": device.hex(), "app": application.hex(), "key": key_id.hex()}
        try:
            return resolve(snapshot, claims, DEVICE_SCOPES)
        except Unauthorized:
            raise Unauthorized(_REFUSED) from None
    if device_filter(found.doc) != "all" or not records.exists(snapshot, APPLICATION, ROOT, application):
        raise Unauthorized(_REFUSED)
    check_not_deleted(snapshot, application, client_id)
    principal = Principal(
        kind="application",
        scopes=frozenset(),
        expires_ms=None,
        application_id=application,
        name=found.doc.get("name") or "",
        key=found.doc,
    )
    principal.add_subject(key_id)
    return principal


def device_of(snapshot: Snapshot, application: bytes, client_id: str) -> bytes | None:
    """The device of an application whose id a client id is; None if it is none."""
    if not is_id(client_id):
        return None
    id = bytes.fromhex(client_id)
    return id if records.exists(snapshot, DEVICE, application, id) else None


def check_not_deleted(snapshot: Snapshot, application: bytes, client_id: str) -> None:
    """Raise `Forbidden` if a client id is that of a deleted device that may be restored."""
    if is_id(client_id) and records.exists(snapshot, DELETED_DEVICE, application, bytes.fromhex(client_id)):
        raise Forbidden("The device with this client id was deleted; restore it, or use another client id.")


def client_key(client_id: str, device: bytes | None) -> bytes:
    """What identifies a client within its application, as 12 bytes: its device, or a hash of its client id."""
    return sha256(client_id.encode()).digest()[: keys.ID_BYTES] if device is None else device


def topics_of(key: Mapping[str, Any], action: Literal["pub", "sub"]) -> tuple[str, list[str]]:
    """How the topics of a key or certificate are meant for an action (`all`, `none`, `whitelist`, `blacklist`), and
    the topics. Who has neither a key nor a certificate may use all."""
    return (key["filterType"], key[f"{action}Topics"]) if key else ("all", [])
