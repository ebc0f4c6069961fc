"""The application actor: the only writer of an application's record, its access keys, API tokens and jobs."""

from __future__ import annotations

import hashlib
import ipaddress
import secrets
from functools import partial
from typing import Any, ClassVar, NamedTuple

import msgspec

from trunkline.actors.applications.messages import (
    ApplicationPatch,
    ApplicationPost,
    CreateApplication,
    CreateRecord,
    Creator,
    DeleteApplication,
    DeleteRecord,
    KeyPatch,
    KeyPost,
    PatchApplication,
    PatchRecord,
    TokenPatch,
    TokenPost,
)
from trunkline.actors.jobs.owner import JobOwner
from trunkline.actors.records import records
from trunkline.actors.records.kinds import APPLICATION, KINDS
from trunkline.actors.runtime.actor import Actor, Ref
from trunkline.actors.values.errors import Invalid, NotFound
from trunkline.actors.values.ids import ROOT
from trunkline.actors.values.structs import Message
from trunkline.actors.values.timestamps import parse_iso
from trunkline.store import keys
from trunkline.store.codec import decode, encode


class Created(NamedTuple):
    """A record that was made; `secret` is shown to the caller once and kept nowhere."""

    id: bytes
    secret: str | None = None


class RecordOwner(Actor):
    """An actor that owns plain records beside its own: access keys, API tokens.

    They lie under the id of their owner.
    """

    __slots__ = ()

    def on_create_record(self, message: CreateRecord) -> Created:
        """Create a record of a plain kind."""
        now_ms = self.system.clock.wall_ms()
        id = self.system.ids.new(now_ms)
        doc: records.Doc = {
            "creationDate": now_ms,
            "lastUpdated": now_ms,
            **_by("created", message.by),
            **_by("lastUpdated", message.by),
        }
        fields, secret = self._new_record(message.body, id, now_ms)
        records.write(self, KINDS[message.kind], self.ref.id, id, None, {**doc, **fields})
        return Created(id, secret)

    def _new_record(
        self, body: KeyPost | TokenPost, id: bytes, now_ms: int
    ) -> tuple[records.Doc, str | None]:
        """The fields of a new record, and the secret that is shown once."""
        if isinstance(body, TokenPost):
            return _new_token(body, now_ms), None
        return _new_key(body, self.ref.id + id)

    def on_patch_record(self, message: PatchRecord) -> None:
        """Change a record of a plain kind."""
        kind = KINDS[message.kind]
        raw, doc = self._record(kind, message.id)
        records.check_match(message.if_match, raw)
        changes = _changes(message.body)
        now_ms = max(self.system.clock.wall_ms(), doc["lastUpdated"] + 1)
        changed = {**doc, **changes, "lastUpdated": now_ms, **_by("lastUpdated", message.by)}
        if isinstance(message.body, KeyPatch):
            _check_addresses(changes)
            if "filterType" in changes:
                _check_whitelist(changed)
        records.write(self, kind, self.ref.id, message.id, doc, changed)
        self.after_commit(self.system.authority_changed)

    def on_delete_record(self, message: DeleteRecord) -> None:
        """Delete a record of a plain kind."""
        kind = KINDS[message.kind]
        raw, doc = self._record(kind, message.id)
        records.check_match(message.if_match, raw)
        records.erase(self, kind, self.ref.id, message.id, doc)
        self.after_commit(self.system.authority_changed)

    def _record(self, kind: records.Kind, id: bytes) -> tuple[bytes, records.Doc]:
        raw = self.system.journal.get(keys.RECORDS, keys.record_key(kind.name, self.ref.id, id))
        if raw is None:
            raise NotFound(f"There is no {kind.noun} {id.hex()} here.")
        return raw, decode(raw)


class Application(RecordOwner, JobOwner):
    """One application. `ref.parent` is `ids.ROOT`."""

    kind: ClassVar[str] = "application"
    noun: ClassVar[str] = "application"
    births: ClassVar[frozenset[type[Message]]] = frozenset({CreateApplication})

    __slots__ = ("doc", "raw")

    def __init__(self, system: Any, ref: Ref) -> None:
        self.doc: records.Doc = {}
        self.raw = b""
        super().__init__(system, ref)

    def load(self) -> bool:
        raw = self.system.journal.get(keys.RECORDS, keys.record_key(APPLICATION.name, ROOT, self.ref.id))
        if raw is None:
            return False
        self.raw, self.doc = raw, decode(raw)
        return True

    def on_create_application(self, message: CreateApplication) -> bytes:
        """Create the record; the answer is its id."""
        now_ms = self.system.clock.wall_ms()
        doc: records.Doc = {
            "creationDate": now_ms,
            "lastUpdated": now_ms,
            "ownerId": message.owner_id.hex(),
            "ownerType": "user",
        }
        doc |= self._changes(message.body)
        self.raw = records.write(self, APPLICATION, ROOT, self.ref.id, None, doc)
        self.doc = doc
        self.exists = True
        return self.ref.id

    def on_patch_application(self, message: PatchApplication) -> None:
        """Change what the body names."""
        records.check_match(message.if_match, self.raw)
        now_ms = max(self.system.clock.wall_ms(), self.doc["lastUpdated"] + 1)
        doc = {**self.doc, **self._changes(message.body), "lastUpdated": now_ms}
        self.raw = records.write(self, APPLICATION, ROOT, self.ref.id, self.doc, doc)
        self.doc = doc

    def on_delete_application(self, message: DeleteApplication) -> None:
        """Delete the record now and leave a note for the sweeper, which removes what lies under it."""
        records.check_match(message.if_match, self.raw)
        records.erase(self, APPLICATION, ROOT, self.ref.id, self.doc)
        self._claim_slug(None)
        self.put(keys.META, keys.purge_key(self.ref.id), encode({"applicationId": self.ref.id.hex()}))
        self.exists = False
        self.after_commit(partial(self.system.forget_children, self.ref.id))
        self.after_commit(self.system.authority_changed)

    def _changes(self, body: ApplicationPost | ApplicationPatch) -> records.Doc:
        if isinstance(body, ApplicationPost):
            for field, word in (
                ("org_id", "orgId: organizations are"),
                ("application_template_id", "applicationTemplateId: application templates are"),
                ("applied_template_ids", "appliedTemplateIds: application templates are"),
            ):
                if getattr(body, field) is not msgspec.UNSET:
                    raise Invalid(f"{word} not supported by this server yet; leave the field out.")
        if body.archive_config is not msgspec.UNSET and body.archive_config is not None:
            raise Invalid(
                "archiveConfig: archives are not supported by this server yet; leave the field out."
            )
        changes = _changes(body)
        changes.pop("archiveConfig", None)
        if "expUserTokenCutoff" in changes:
            changes["expUserTokenCutoff"] = parse_iso(
                changes["expUserTokenCutoff"], field="expUserTokenCutoff"
            )
        keys_seen = [item["key"] for item in changes.get("globals", ())]
        for key in keys_seen:
            if keys_seen.count(key) > 1:
                raise Invalid(f"globals: the key {key} stands in the list twice.")
        if "endpointSlug" in changes:
            self._claim_slug(changes["endpointSlug"])
        return changes

    def _claim_slug(self, slug: str | None) -> None:
        """An endpoint slug belongs to one application of the server."""
        old = self.doc.get("endpointSlug")
        if slug == old:
            return
        if slug is not None:
            key = keys.unique_key(APPLICATION.name, ROOT, "endpointSlug", slug)
            if self.system.journal.get(keys.UNIQUE, key) is not None:
                raise Invalid(f"endpointSlug: {slug} is taken by another application; choose another one.")
            self.put(keys.UNIQUE, key, self.ref.id)
        if old is not None:
            self.delete(keys.UNIQUE, keys.unique_key(APPLICATION.name, ROOT, "endpointSlug", old))


# What the plain kinds store.


def _new_key(body: KeyPost, address: bytes) -> tuple[records.Doc, str]:
    """The fields of an access key. Its text is the ids of application and key, so that it finds itself."""
    secret = secrets.token_urlsafe(48)
    fields = _changes(body)
    named = bool(fields.get("deviceIds") or fields.get("deviceTags"))
    chosen = fields.setdefault("filterType", "whitelist" if named else "all")
    if chosen in ("all", "none") and named:
        raise Invalid(
            f"filterType: {chosen} names every device or none; leave deviceIds and deviceTags out, "
            "or use whitelist or blacklist."
        )
    _check_whitelist(fields)
    _check_addresses(fields)
    defaults: records.Doc = {
        "status": "active",
        "deviceIds": [],
        "deviceTags": [],
        "pubTopics": [],
        "subTopics": [],
        "addressFilterType": "all",
        "addresses": [],
    }
    fields["deviceIds"] = [id.lower() for id in fields.get("deviceIds", ())]
    return {
        **defaults,
        **fields,
        "key": address.hex(),
        "secretHash": hash_secret(secret),
    }, secret


def _check_whitelist(fields: records.Doc) -> None:
    named = bool(fields.get("deviceIds") or fields.get("deviceTags"))
    if fields["filterType"] == "whitelist" and not named:
        raise Invalid(
            "filterType: a whitelist needs deviceIds or deviceTags; an empty one would reach no device."
        )


def _check_addresses(fields: records.Doc) -> None:
    for position, address in enumerate(fields.get("addresses", ())):
        try:
            ipaddress.ip_network(address, strict=False)
        except ValueError:
            raise Invalid(
                f"addresses[{position}]: {address!r} is neither an address nor a network; "
                "write it as 192.0.2.7, 192.0.2.0/24 or 2001:db8::/32."
            ) from None


def hash_secret(secret: str) -> bytes:
    """The digest of a key's secret. The secret has 384 random bits, so a fast hash keeps it."""
    return hashlib.sha256(secret.encode()).digest()


def _new_token(body: TokenPost, now_ms: int) -> records.Doc:
    _check_roles(body)
    fields = _changes(body)
    fields.setdefault("status", body.status)
    if "expirationDate" in fields:
        fields["expirationDate"] = parse_iso(fields["expirationDate"], field="expirationDate")
        if fields["expirationDate"] <= now_ms:
            raise Invalid("expirationDate: lies in the past; such a token would never hold.")
    return fields


def _check_roles(body: TokenPost | TokenPatch) -> None:
    if body.default_role not in (msgspec.UNSET, "admin"):
        raise Invalid("defaultRole: roles are not supported by this server yet; restrict the token by scope.")
    if body.org_roles is not msgspec.UNSET and body.org_roles:
        raise Invalid(
            "orgRoles: organizations are not supported by this server yet; restrict the token by scope."
        )


def _changes(
    body: KeyPost | KeyPatch | TokenPost | TokenPatch | ApplicationPost | ApplicationPatch,
) -> records.Doc:
    """The fields that the body names, as they are stored. A null takes the field away."""
    if isinstance(body, TokenPatch):
        _check_roles(body)
    changes: records.Doc = msgspec.to_builtins(body)
    changes.pop("defaultRole", None)
    changes.pop("orgRoles", None)
    return changes


def _by(verb: str, creator: Creator) -> records.Doc:
    return {f"{verb}ById": creator.id, f"{verb}ByType": creator.type, f"{verb}ByName": creator.name}
