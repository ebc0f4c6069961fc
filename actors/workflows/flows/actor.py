"""The workflow actor: the only writer of a workflow's record, its versions and its storage entries.

It runs nothing; what runs leave behind is stored by the runner (`engine/ends.py`). Its memory is the record and the
sums; definitions are read when they are needed, because a workflow that nobody edits should cost no memory.

The editable state is called `develop`: its triggers, nodes and globals belong to the workflow itself. A version has a
record of its own and never changes, but for its notes and whether it is enabled.

A definition is run in the name of who wrote it, enabled it or made it the default version, whoever was the last. Who
changes only a name does not answer for what the nodes do.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import msgspec

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.mandate import stored_mandates
from trunkline.actors.core.records.messages import Creator
from trunkline.actors.core.records.revision import check_match
from trunkline.actors.core.records.source import Staged
from trunkline.actors.core.values.errors import Invalid, NotFound, PayloadTooLarge
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.names import check_addressable
from trunkline.actors.core.values.structs import Created, Message
from trunkline.actors.workflows.flows.bodies import FlowPost, FlowVersionPost
from trunkline.actors.workflows.flows.definition import (
    check_definition,
    check_times,
    split,
    trigger_keys,
    used_custom_nodes,
)
from trunkline.actors.workflows.flows.kind import (
    AUTHORS,
    CLASSES,
    FLOW,
    FLOW_VERSION,
    RESERVED,
    TRIGGER_KEYS,
    USED,
)
from trunkline.actors.workflows.flows.messages import (
    CreateFlow,
    CreateFlowVersion,
    DeleteFlow,
    DeleteFlowVersion,
    DeleteSomeVersions,
    ImportFlows,
    NewFlow,
    PatchFlow,
    PatchFlowVersion,
)
from trunkline.actors.workflows.flows.run_records import ExpireRuns
from trunkline.actors.workflows.flows.storage import FlowStorage
from trunkline.actors.workflows.flows.versions import (
    VersionFound,
    default_version,
    find_version,
    id_bytes,
    no_version,
    version_by_id,
)
from trunkline.actors.workflows.flows.views import VersionsDeleted
from trunkline.store import keys
from trunkline.store.codec import decode, encode


def record_fields(named: Doc) -> Doc:
    """The fields of a workflow's body as its record has them. None removes a field, as does a blank category."""
    return {**named, "category": None} if named.get("category") == "" else named


class Flow(FlowStorage):
    """One workflow of one application. `ref.parent` is the application's id."""

    kind: ClassVar[str] = "flow"
    noun: ClassVar[str] = "workflow"
    creation_messages: ClassVar[frozenset[type[Message]]] = frozenset({CreateFlow, ImportFlows})

    __slots__ = ()

    # The workflow.

    def on_create_flow(self, message: CreateFlow) -> Created:
        """Create the workflow."""
        body: FlowPost = message.body
        named, definition = split(msgspec.to_builtins(body))
        check_definition(definition, body.flow_class, self.system.limits)
        fields = {name: value for name, value in record_fields(named).items() if value is not None}
        self._create(
            {**fields, "enabled": body.enabled, "flowClass": body.flow_class}, definition, message.by
        )
        if not message.is_import:
            self._check_times(definition)
        return Created(self.ref.id)

    def on_import_flows(self, message: ImportFlows) -> None:
        """Create the workflow with its versions."""
        new: NewFlow = message.flows[self.ref.id]
        for version in new.versions:
            self._write_version(version.id, None, version.doc, version.definition, message.by)
        self._create(new.doc, new.definition, message.by)

    def on_patch_flow(self, message: PatchFlow) -> None:
        """Change the fields that the body contains."""
        check_match(message.if_match, self.raw)
        named, changed = split(msgspec.to_builtins(message.body))
        named = record_fields(named)
        if named.get("defaultVersionId") is not None:
            named["defaultVersionId"] = self._default_id(named["defaultVersionId"])
        new = records.apply_patch(self.doc, named)
        definition: Doc | None = None
        if changed:
            definition = {**self._definition(ROOT), **changed}
            check_definition(definition, new["flowClass"], self.system.limits)
            new[USED] = self._count_uses(self._used(), definition)
            self.put_definition(ROOT, definition)
        running = self._running_triggers(new, definition)
        now_ms = records.next_update_ms(self.system.clock.wall_ms(), self.doc)
        if changed or named.get("enabled"):
            new[AUTHORS] = stored_mandates(message.by.mandates)
        if named.get("defaultVersionId") is not None:
            self._adopt(bytes.fromhex(named["defaultVersionId"]), message.by)
        self._write({**new, TRIGGER_KEYS: running, "lastUpdated": now_ms, **_by("lastUpdated", message.by)})
        if not message.is_import and (
            "triggers" in changed or named.get("enabled") or "defaultVersionId" in named
        ):
            self._check_times(definition)

    def on_delete_flow(self, message: DeleteFlow) -> None:
        """Delete the record, which hides all the rest, and store a marker for the sweeper."""
        check_match(message.if_match, self.raw)
        self._count_uses(self._used(), {})
        records.erase(self, FLOW, self.ref.parent, self.ref.id, self.doc)
        self.put(keys.META, keys.flow_sweep_key(keys.flow_prefix(self.ref.parent, self.ref.id)), encode(True))
        self.exists = False

    def _create(self, fields: Doc, definition: Doc, by: Creator) -> None:
        """Stage the new workflow, after its versions."""
        if self.exists:
            raise Invalid(f"id: there is already a workflow {self.ref.id.hex()}.")
        if not self._parent_exists():
            raise NotFound(f"There is no application {self.ref.parent.hex()}.")
        now_ms = self.system.clock.wall_ms()
        self.put_definition(ROOT, definition)
        self._write(
            {
                "creationDate": now_ms,
                "lastUpdated": now_ms,
                **_by("created", by),
                **_by("lastUpdated", by),
                **fields,
                AUTHORS: stored_mandates(by.mandates),
                TRIGGER_KEYS: self._running_triggers(fields, definition),
                USED: self._count_uses([], definition),
            }
        )
        self.exists = True

    def _write(self, doc: Doc) -> None:
        old = self.doc if self.exists else None
        self.raw = records.write(self, FLOW, self.ref.parent, self.ref.id, old, doc)
        self.doc = doc

    def _check_times(self, develop: Doc | None = None) -> None:
        """Raise `Invalid` if the version that runs has triggers that would never fire. `develop` if it is known."""
        if not self.doc["enabled"] or self.doc["flowClass"] not in CLASSES:
            return
        running = default_version(Staged(self).get, self.ref.parent, self.ref.id, self.doc)
        if running.doc.get("enabled", True):
            at = "" if running.id == ROOT else f"The version {running.name!r}: "
            known = develop if running.id == ROOT else None
            check_times(self._definition(running.id) if known is None else known, at)

    def _default_id(self, id: str) -> str:
        """The id of a version that can be the default; the id of the workflow itself stands for `develop`."""
        found = version_by_id(self.system.journal.get, self.ref.parent, self.ref.id, bytes.fromhex(id))
        if found is None:
            raise Invalid(
                f"defaultVersionId: this workflow has no version {id}; give the id of one of its versions, or null "
                "for develop."
            )
        return id.lower()

    def _running_triggers(self, doc: Doc, develop: Doc | None = None) -> list[list[str]]:
        """The keys of the triggers of the version that runs. `develop` is its definition if that is known."""
        running = default_version(Staged(self).get, self.ref.parent, self.ref.id, doc)
        if running.id != ROOT:
            found: list[list[str]] = running.doc[TRIGGER_KEYS]
            return found
        return trigger_keys(self._definition(ROOT) if develop is None else develop)

    def _used(self) -> list[str]:
        """The ids of the custom nodes that `develop` uses."""
        used: list[str] | None = self.doc.get(USED)  # workflows of early servers have none
        return used_custom_nodes(self._definition(ROOT)) if used is None else used

    def _count_uses(self, before: list[str], after: Doc) -> list[str]:
        """Stage the changed numbers of workflows that use a custom node; return the ids of those that are used now."""
        now, old = used_custom_nodes(after), set(before)
        for ids, change in ((set(now) - old, 1), (old - set(now), -1)):
            for id in sorted(ids):
                if (custom_node := id_bytes(id)) is not None:
                    key = keys.flow_uses_key(self.ref.parent, custom_node)
                    self.add(keys.FLOWS, key, {"n": change})
        return now

    # Versions.

    def on_create_flow_version(self, message: CreateFlowVersion) -> Created:
        """Create a version, or replace the one of this name."""
        body: FlowVersionPost = message.body
        if body.version.lower() in RESERVED:
            raise Invalid(f"version: {body.version!r} is reserved; give another name.")
        named, definition = split(msgspec.to_builtins(body))
        check_definition(definition, self.doc["flowClass"], self.system.limits)
        fields = {**named, "enabled": body.enabled}
        get = self.system.journal.get
        taken = get(keys.FLOWS, keys.flow_version_key(self.ref.parent, self.ref.id, body.version))
        old = None if taken is None else version_by_id(get, self.ref.parent, self.ref.id, decode(taken))
        if old is None:
            if message.import_id is None:
                check_addressable(body.version)
            most = self.system.limits.flow_versions_max
            if self.sums["versions"] >= most:
                raise PayloadTooLarge(
                    f"A workflow has at most {most} versions; delete some that are not used."
                )
            id = message.import_id or self.system.ids.new(self.system.clock.wall_ms())
        elif message.query.allow_replacement:
            id = old.id
        else:
            raise Invalid(
                f"version: there is already a version {body.version!r}; give another name, or allowReplacement=true."
            )
        self._write_version(id, old, fields, definition, message.by)
        if id.hex() == self.doc.get("defaultVersionId"):
            self._write({**self.doc, TRIGGER_KEYS: trigger_keys(definition)})
            if message.import_id is None:
                self._check_times()
        return Created(id)

    def on_patch_flow_version(self, message: PatchFlowVersion) -> None:
        """Change the notes of a version, or whether it is enabled."""
        found = self._version(message.flow_version)
        check_match(message.if_match, found.raw)
        now_ms = records.next_update_ms(self.system.clock.wall_ms(), found.doc)
        new = records.apply_patch(found.doc, msgspec.to_builtins(message.body))
        new |= {"lastUpdated": now_ms, **_by("lastUpdated", message.by)}
        if message.body.enabled is True:
            new[AUTHORS] = stored_mandates(message.by.mandates)
        records.write(self, FLOW_VERSION, self.ref.parent, found.id, found.doc, new)
        if message.body.enabled is True and found.id.hex() == self.doc.get("defaultVersionId"):
            self._check_times()

    def on_delete_flow_version(self, message: DeleteFlowVersion) -> None:
        """Delete a version."""
        found = self._version(message.flow_version)
        check_match(message.if_match, found.raw)
        if found.id.hex() == self.doc.get("defaultVersionId"):
            raise Invalid(
                f"The version {found.name!r} is the default version; set defaultVersionId of the workflow to another "
                "one, or to null, before you delete it."
            )
        self._erase_versions([found])

    def on_delete_some_versions(self, message: DeleteSomeVersions) -> VersionsDeleted:
        """Delete versions, but never the default version."""
        get = self.system.journal.get
        found = [version_by_id(get, self.ref.parent, self.ref.id, id) for id in message.ids]
        versions = [each for each in found if each is not None and each.id != ROOT]
        deleted = [each for each in versions if each.id.hex() != self.doc.get("defaultVersionId")]
        self._erase_versions(deleted)
        return VersionsDeleted(removed=len(deleted), failed=len(versions) - len(deleted))

    def _version(self, named: str) -> VersionFound:
        """The version of a call that changes one. Raises `NotFound`, or `Invalid` for `develop`."""
        found = find_version(self.system.journal.get, self.ref.parent, self.ref.id, self.doc, named)
        if found is None:
            raise no_version(named)
        if found.id == ROOT:
            raise Invalid(
                "flowVersionId: develop is the editable state of the workflow and no version; change the workflow."
            )
        return found

    def _write_version(
        self, id: bytes, old: VersionFound | None, fields: Doc, definition: Doc, by: Creator
    ) -> None:
        now_ms = self.system.clock.wall_ms()
        doc = {
            "creationDate": now_ms if old is None else old.doc["creationDate"],
            "lastUpdated": now_ms if old is None else records.next_update_ms(now_ms, old.doc),
            **_by("created", by),
            **_by("lastUpdated", by),
            "flowId": self.ref.id.hex(),
            **fields,
            AUTHORS: stored_mandates(by.mandates),
            TRIGGER_KEYS: trigger_keys(definition),
        }
        records.write(self, FLOW_VERSION, self.ref.parent, id, None if old is None else old.doc, doc)
        self.put_definition(id, definition)
        if old is None:
            name = keys.flow_version_key(self.ref.parent, self.ref.id, fields["version"])
            self.put(keys.FLOWS, name, encode(id))
            self.add_sums(versions=1)

    def _adopt(self, id: bytes, by: Creator) -> None:
        """Stage that a version is run in the name of who makes it the default version."""
        found = version_by_id(self.system.journal.get, self.ref.parent, self.ref.id, id)
        if found is not None and found.id != ROOT:
            new = {**found.doc, AUTHORS: stored_mandates(by.mandates)}
            records.write(self, FLOW_VERSION, self.ref.parent, found.id, found.doc, new)

    def _erase_versions(self, versions: Iterable[VersionFound]) -> None:
        application, flow = self.ref.parent, self.ref.id
        for each in versions:
            records.erase(self, FLOW_VERSION, application, each.id, each.doc)
            self.delete(keys.FLOWS, keys.flow_definition_key(application, flow, each.id))
            self.delete(keys.FLOWS, keys.flow_version_key(application, flow, each.name))
            self.delete(keys.FLOWS, keys.flow_total_key(application, flow, each.id))
            self.add_sums(versions=-1)

    # What is kept of runs.

    def on_expire_runs(self, message: ExpireRuns) -> list[int]:
        """Remove what is too old. Run records and sums of past minutes do not change any more."""
        for key in (*message.runs, *message.minutes):
            self.delete(keys.FLOWS, key)
        return [len(message.runs), len(message.minutes)]


def _by(verb: str, creator: Creator) -> Doc:
    return {f"{verb}ById": creator.id, f"{verb}ByType": creator.type, f"{verb}ByName": creator.name}
