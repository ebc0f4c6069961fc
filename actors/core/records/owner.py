"""The bases of actors that are the parent of plain records, and of those that also have one record of their own."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, ClassVar

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc, Kind
from trunkline.actors.core.records.messages import (
    AdoptRecords,
    CreateRecord,
    CreateRecords,
    Creator,
    DeleteRecord,
    PatchRecord,
    ReleaseRecords,
)
from trunkline.actors.core.records.resource import Change, Resource, Resources, missing
from trunkline.actors.core.records.revision import check_match
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.structs import Created
from trunkline.store import keys
from trunkline.store.codec import decode
from trunkline.store.keyring import Keyring

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.host import Host
    from trunkline.actors.core.runtime.ref import Ref


class RecordParent(Actor):
    """Base of actors whose plain records have `ref.id` as their parent."""

    __slots__ = ()

    def on_create_record(self, message: CreateRecord) -> Created:
        """Create a record."""
        resource = self._resource(message.resource)
        now_ms = self.system.clock.wall_ms()
        id = message.import_id or self.system.ids.new(now_ms)
        named = resource.stored(message.body)
        given = {name: value for name, value in named.items() if value is not None}
        new: Doc = {
            "creationDate": now_ms,
            "lastUpdated": now_ms,
            **by_fields("created", message.by),
            **by_fields("lastUpdated", message.by),
            **resource.defaults,
            **given,
            **message.more,
        }
        change = Change(
            self,
            id,
            now_ms,
            None,
            new,
            named,
            message.by,
            is_import=message.import_id is not None,
            in_batch=message.in_batch,
        )
        if resource.check is not None:
            resource.check(change)
        resource.seal(self._keyring, id, change.new)
        records.write(self, resource.kind, self.ref.id, id, None, change.new)
        return Created(id, change.shown_once)

    def on_create_records(self, message: CreateRecords) -> list[Created]:
        """Create several records, all or none."""
        return [
            self.on_create_record(
                CreateRecord(resource=message.resource, body=body, by=message.by, in_batch=True)
            )
            for body in message.bodies
        ]

    def on_patch_record(self, message: PatchRecord) -> None:
        """Change the fields that the body contains."""
        resource = self._resource(message.resource)
        raw, old = self._record(resource.kind, message.record)
        check_match(message.if_match, raw)
        named = resource.stored(message.body)
        now_ms = records.next_update_ms(self.system.clock.wall_ms(), old)
        new = resource.changed(old, named) | {"lastUpdated": now_ms, **by_fields("lastUpdated", message.by)}
        change = Change(
            self, message.record, now_ms, old, new, named, message.by, is_import=message.is_import
        )
        if resource.check is not None:
            resource.check(change)
        resource.seal(self._keyring, message.record, change.new)
        records.write(self, resource.kind, self.ref.id, message.record, old, change.new)

    def on_delete_record(self, message: DeleteRecord) -> None:
        """Delete a record."""
        resource = self._resource(message.resource)
        kind = resource.kind
        raw, old = self._record(kind, message.record)
        check_match(message.if_match, raw)
        if resource.before_delete is not None:
            resource.before_delete(self, message.record, old)
        records.erase(self, kind, self.ref.id, message.record, old)

    def on_release_records(self, message: ReleaseRecords) -> list[tuple[bytes, Doc]]:
        """Remove those of the records that exist; the answer is what another parent has to adopt."""
        resource = self._resource(message.resource)
        kind = resource.kind
        released: list[tuple[bytes, Doc]] = []
        for id in message.ids:
            doc = records.doc_of(self.system.journal, kind, self.ref.id, id)
            if doc is None:
                continue
            if resource.before_delete is not None:
                resource.before_delete(self, id, doc)
            released.append((id, doc))
            records.erase(self, kind, self.ref.id, id, doc)
        return released

    def on_adopt_records(self, message: AdoptRecords) -> None:
        """Take records that another parent releases."""
        resource, wall_ms = self._resource(message.resource), self.system.clock.wall_ms()
        for id, doc in message.records:
            new = doc | {"lastUpdated": records.next_update_ms(wall_ms, doc)}
            records.write(self, resource.kind, self.ref.id, id, None, new)
            if resource.adopted is not None:
                resource.adopted(self, id, new)

    def _resource(self, name: str) -> Resource:
        return self.system.component(Resources)[name]

    @property
    def _keyring(self) -> Keyring:
        return self.system.component(Keyring)

    def _record(self, kind: Kind, id: bytes) -> tuple[bytes, Doc]:
        raw = records.raw_of(self.system.journal.get, kind, self.ref.id, id)
        if raw is None:
            raise missing(kind, id)
        return raw, decode(raw)


class RecordOwner(RecordParent):
    """Base of users and applications. `doc` is the actor's own record, of kind `own`; `raw` its stored bytes."""

    own: ClassVar[Kind]

    __slots__ = ("doc", "raw")

    def __init__(self, system: Host, ref: Ref) -> None:
        self.doc: Doc = {}
        self.raw = b""
        super().__init__(system, ref)

    def load(self) -> bool:
        raw = records.raw_of(self.system.journal.get, self.own, ROOT, self.ref.id)
        if raw is None:
            return False
        self.raw, self.doc = raw, decode(raw)
        return True

    def create(self, fields: Doc) -> Created:
        """Stage the actor's own record, which is new."""
        now_ms = self.system.clock.wall_ms()
        self.doc = {"creationDate": now_ms, "lastUpdated": now_ms, **fields}
        self.raw = records.write(self, self.own, ROOT, self.ref.id, None, self.doc)
        self.exists = True
        return Created(self.ref.id)

    def change(self, named: Doc) -> None:
        """Stage changed fields of the actor's own record; None removes a field."""
        now_ms = records.next_update_ms(self.system.clock.wall_ms(), self.doc)
        doc = records.apply_patch(self.doc, named) | {"lastUpdated": now_ms}
        self.raw = records.write(self, self.own, ROOT, self.ref.id, self.doc, doc)
        self.doc = doc

    def claim(self, field: str, new: str | None, taken: str, *, fold: bool = False) -> None:
        """Stage the claim of a unique value of a field: no other record of the kind may have it.

        Raises `Invalid` with the message `taken` if another record has it. `fold` ignores case.
        """
        old = self.doc.get(field)
        key, old_key = (
            None if each is None else unique_key(self.own, field, each, fold=fold) for each in (new, old)
        )
        if key == old_key:
            return
        if key is not None:
            if self.own.home != "root":
                records.hold_names(self)
            if self.system.journal.get(keys.UNIQUE, key) is not None:
                raise Invalid(taken)
            self.put(keys.UNIQUE, key, self.ref.id)
        if old_key is not None:
            self.delete(keys.UNIQUE, old_key)


def unique_key(kind: Kind, field: str, value: str, *, fold: bool = False) -> bytes:
    """The key at which the id of the record with this unique value is stored."""
    return keys.unique_key(kind.name, ROOT, field, value.casefold() if fold else value)


def check_unused(change: Change, kind: Kind, field: str, body_field: str) -> None:
    """Raise `Invalid` for `body_field` if another record has the text of `field`, one of `Kind.unique`.

    For texts that are made from a field of the body; `records.write` refuses the others by their own name.
    """
    owner = change.owner
    key = records.unique_keys(kind, owner.ref.id, change.new)[field]
    holder = owner.system.journal.get(keys.UNIQUE, key)
    if holder is not None and holder != change.id:
        raise Invalid(f"{body_field}: the {kind.noun} {holder.hex()} has it already; give each its own.")


def check_reference(change: Change, kind: Kind, id: str, field: str) -> None:
    """Raise `Invalid` for `field` if the application has no record of the kind with this id. An import may have it."""
    owner = change.owner
    if change.is_import:
        return
    key = keys.record_key(kind.name, owner.ref.id, bytes.fromhex(id))
    if owner.system.journal.get(keys.RECORDS, key) is None:
        raise Invalid(f"{field}: there is no {kind.noun} {id.lower()} in this application.")


def check_ids(
    actor: Actor, field: str, kind: str, noun: str, ids: Sequence[str], known: Collection[str] = ()
) -> None:
    """Raise `Invalid` for `field` if the application has no record of a kind with one of these ids, but for `known`."""
    for position, id in enumerate(ids):
        key = keys.record_key(kind, actor.ref.id, bytes.fromhex(id))
        if id not in known and actor.system.journal.get(keys.RECORDS, key) is None:
            raise Invalid(f"{field}[{position}]: there is no {noun} {id} in this application.")


def find_by_unique(actor: Actor, kind: Kind, field: str, text: str) -> Doc | None:
    """The record of this actor that has the text of `field`, one of `Kind.unique`; None if there is none."""
    journal, parent = actor.system.journal, actor.ref.id
    id = journal.get(keys.UNIQUE, keys.unique_key(kind.name, parent, field, text))
    raw = None if id is None else records.raw_of(journal.get, kind, parent, id)
    return None if raw is None else decode(raw)


def by_fields(verb: str, creator: Creator) -> Doc:
    """The fields that tell who created or last changed a record; `verb` is `created` or `lastUpdated`."""
    return {f"{verb}ById": creator.id, f"{verb}ByType": creator.type, f"{verb}ByName": creator.name}
