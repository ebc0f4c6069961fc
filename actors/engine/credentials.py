"""Credentials of the application, with their secrets, for the nodes that name them.

A secret is for the request of the node only: it never gets into a payload, an error or a record of the run.
"""

from __future__ import annotations

from typing import Any

from trunkline.actors.connections.credentials.resource import CREDENTIAL
from trunkline.actors.core.records import records
from trunkline.actors.engine.errors import NodeError
from trunkline.actors.engine.world import World
from trunkline.store import keys
from trunkline.store.codec import decode
from trunkline.store.errors import CannotOpen
from trunkline.store.keyring import Keyring, sealed_values


def credential_of(world: World, name: str, type: str) -> dict[str, Any]:
    """The configuration of the credential with this name. Raises `NodeError` if it is of another type, or disabled."""
    get, application = world.system.journal.get, world.application
    id = get(keys.UNIQUE, keys.unique_key(CREDENTIAL.name, application, "name", name))
    raw = None if id is None else records.raw_of(get, CREDENTIAL, application, id)
    if id is None or raw is None:
        raise _unusable(f"the application has no credential {name[:300]!r}.")
    doc = decode(raw)
    if doc["type"] != type:
        raise _unusable(f"the credential {name!r} is for {doc['type']}; give one for {type}.")
    if not doc["enabled"]:
        raise _unusable(f"the credential {name!r} is disabled.")
    keyring = world.system.component(Keyring)
    try:
        for each in list(sealed_values(doc)):
            each.holder[each.key] = keyring.unseal(each.value, kind=CREDENTIAL.name, id=id, field=each.field)
    except CannotOpen as error:
        raise _unusable(f"the secret of {name!r} cannot be read: {error}.") from None
    config: dict[str, Any] = doc[f"{type}Config"]
    return config


def _unusable(why: str) -> NodeError:
    return NodeError("CredentialError", f"config.credentialNameTemplate: {why}")
