"""The application actor: the only writer of an application's record, plain resources, API tokens and jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import ClassVar

import msgspec
from msgspec import UNSET

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc, Kind
from trunkline.actors.core.records.kinds import APPLICATION, experience_slug_key
from trunkline.actors.core.records.owner import RecordOwner
from trunkline.actors.core.records.revision import check_match
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.global_values import check_global
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.structs import Created, Message
from trunkline.actors.core.values.timestamps import check_cutoff, parse_iso
from trunkline.actors.platform.applications.archive_config import (
    ArchiveConfig,
    archives_otherwise,
    stored_config,
)
from trunkline.actors.platform.applications.archive_days import (
    ArchiveDays,
    ArchiveSince,
    NoteArchived,
    NoteTables,
    last_due_day,
)
from trunkline.actors.platform.applications.messages import (
    ApplicationPatch,
    ApplicationPost,
    CreateApplication,
    DeleteApplication,
    ExpireCounts,
    NoteTemplate,
    PatchApplication,
    PatchGlobals,
    TransferApplication,
)
from trunkline.actors.platform.applications.readme import README, PatchReadme, ReadmePatch
from trunkline.actors.platform.jobs.owner import JobOwner
from trunkline.store import keys
from trunkline.store.codec import decode, encode


class Application(RecordOwner, JobOwner):
    """One application. `ref.parent` is `ids.ROOT`."""

    kind: ClassVar[str] = "application"
    noun: ClassVar[str] = "application"
    own: ClassVar[Kind] = APPLICATION
    creation_messages: ClassVar[frozenset[type[Message]]] = frozenset({CreateApplication})

    __slots__ = ()

    def on_create_application(self, message: CreateApplication) -> Created:
        """Create the record; the answer is its id."""
        owner = {"ownerId": message.user.hex(), "ownerType": "user"}
        if message.org is not None:
            owner = {"ownerId": message.org.hex(), "ownerType": "organization"}
        if message.job is not None:
            owner = {"ownerId": ROOT.hex(), "ownerType": "user"}
            self.put(keys.META, keys.building_key(self.ref.id), encode(list(message.job)))
        return self.create(owner | self._named(message.body))

    def on_patch_application(self, message: PatchApplication) -> None:
        """Change the fields that the body sets; null removes a field."""
        check_match(message.if_match, self.raw)
        self.change(self._named(message.body))

    def on_transfer_application(self, message: TransferApplication) -> None:
        """Change the owner. Access that depends on the owner ends."""
        if self.doc["ownerId"] != message.owner.hex():
            raise Invalid(f"The application {self.ref.id.hex()} belongs to another owner.")
        self.change({"ownerId": message.new_owner.hex(), "ownerType": message.new_owner_type})
        if message.owner == ROOT:
            self.delete(keys.META, keys.building_key(self.ref.id))

    def on_patch_globals(self, message: PatchGlobals) -> None:
        """Change the globals that the body names by their keys; the others stay, and new ones come last."""
        check_match(message.if_match, self.raw)
        found = {item["key"]: item for item in self.doc.get("globals", ())}
        _check_keys([change.key for change in message.body])
        for position, change in enumerate(message.body):
            if isinstance(change.json, str):
                check_global(change.json, f"[{position}]")
            named = msgspec.to_builtins(change)
            if "json" not in named and change.key not in found:
                raise Invalid(f"globals: there is no global {change.key} yet; give its json.")
            if change.json is None:
                found.pop(change.key, None)
            else:
                found[change.key] = found.get(change.key, {}) | named
        if len(found) > self.system.limits.globals_max:
            raise Invalid(
                f"globals: there would be {len(found)}; an application has at most {self.system.limits.globals_max}."
            )
        self.change({"globals": list(found.values())})

    def on_patch_readme(self, message: PatchReadme) -> None:
        """Change the readme, or write the first one."""
        id, now_ms = self.ref.id, self.system.clock.wall_ms()
        raw = records.raw_of(self.system.journal.get, README, id, id)
        check_match(message.if_match, raw or b"")
        old = None if raw is None else decode(raw)
        content = message.body.content
        if content is UNSET:
            return
        creator = {"lastUpdatedById": message.by.id, "lastUpdatedByType": message.by.type}
        updated_ms = now_ms if old is None else records.next_update_ms(now_ms, old)
        new = {"content": content, "lastUpdated": updated_ms, **creator}
        records.write(self, README, id, id, old, new)

    def on_expire_counts(self, message: ExpireCounts) -> list[int]:
        """Remove the counts of payloads and requests of old hours; the answer is the number of hours, in a list."""
        journal = self.system.journal
        for hour in message.hours:
            self.delete(keys.COUNTS, keys.app_counts_key(self.ref.id, hour))
            requests = keys.endpoint_counts_key(self.ref.id, hour)
            for key, _ in journal.range(
                keys.COUNTS, requests, keys.endpoint_counts_key(self.ref.id, hour + 1)
            ):
                self.delete(keys.COUNTS, key)
        return [len(message.hours)]

    def on_note_archived(self, message: NoteArchived) -> None:
        """Note that days are archived."""
        days = self._archived()
        days.check(message.begun_ms)
        self._put_archived(days.added(message.first, message.last))

    def on_note_tables(self, message: NoteTables) -> None:
        """Note that the data tables were copied."""
        days = self._archived()
        days.check(message.begun_ms)
        self._put_archived(days._replace(tables_day=max(days.tables_day, message.day)))

    def on_archive_since(self, message: ArchiveSince) -> None:
        """Archive earlier days as well."""
        days = self._archived()
        days.check(message.begun_ms)
        if message.day < days.since:
            self._put_archived(days._replace(since=message.day))

    def _archived(self) -> ArchiveDays:
        raw = self.system.journal.get(keys.META, keys.archive_key(self.ref.id))
        return ArchiveDays(0, 0) if raw is None else ArchiveDays.decoded(raw)

    def _put_archived(self, days: ArchiveDays) -> None:
        self.put(keys.META, keys.archive_key(self.ref.id), days.encoded())

    def on_note_template(self, message: NoteTemplate) -> None:
        """Note that a template was applied. Twice changes nothing."""
        id, applied = self.ref.id, self.doc.get("appliedTemplateIds", [])
        if message.template not in applied:
            self.change({"appliedTemplateIds": [*applied, message.template]})
        key = keys.record_key(README.name, id, id)
        if message.readme and self.system.journal.get(keys.RECORDS, key) is None:
            self.on_patch_readme(PatchReadme(body=ReadmePatch(content=message.readme), by=message.by))

    def on_delete_application(self, message: DeleteApplication) -> None:
        """Delete the record now, and store a marker for the sweeper, which removes the application's data."""
        check_match(message.if_match, self.raw)
        records.erase(self, APPLICATION, ROOT, self.ref.id, self.doc)
        self._claim_slug(None)
        self.put(keys.META, keys.purge_key(self.ref.id), encode({"applicationId": self.ref.id.hex()}))
        if self.doc["ownerId"] == ROOT.hex():
            self.delete(keys.META, keys.building_key(self.ref.id))
        self.exists = False
        self.after_commit(partial(self.system.forget_children, self.ref.id))

    def _named(self, body: ApplicationPost | ApplicationPatch) -> Doc:
        """Return the fields that the body sets, as they are stored. Raises `Invalid` for what does not fit."""
        named: Doc = msgspec.to_builtins(body)
        for field in ("orgId", "applicationTemplateId"):
            named.pop(field, None)  # the message names the owner, and a job applies the template
        if named.get("expUserTokenCutoff") is not None:
            cutoff_ms = parse_iso(named["expUserTokenCutoff"], field="expUserTokenCutoff")
            check_cutoff(cutoff_ms, self.system.clock.wall_ms(), field="expUserTokenCutoff")
            named["expUserTokenCutoff"] = cutoff_ms
        _check_keys([item["key"] for item in named.get("globals") or ()])
        for position, item in enumerate(named.get("globals") or ()):
            check_global(item["json"], f"globals[{position}]")
        if "endpointSlug" in named:
            self._claim_slug(named["endpointSlug"])
        if body.archive_config is None:
            self.delete(keys.META, keys.archive_key(self.ref.id))
        elif body.archive_config is not UNSET:
            named["archiveConfig"] = self._archive_config(body.archive_config)
        return named

    def _archive_config(self, config: ArchiveConfig) -> Doc:
        """Return the archive configuration as it is stored. Another place or content begins a new archive."""
        old, now_ms = self.doc.get("archiveConfig"), self.system.clock.wall_ms()
        new = stored_config(self, config, old)
        if archives_otherwise(old, new):
            since = last_due_day(now_ms, new.get("delayDays", 0), self.system.limits)
            self._put_archived(ArchiveDays.begun(now_ms, since))
        return new

    def _claim_slug(self, slug: str | None) -> None:
        """Reserve the endpoint slug, which is unique on the server; None releases it."""
        taken = f"endpointSlug: {slug} is taken by another application; choose another one."
        if slug is not None and self.system.journal.get(keys.UNIQUE, experience_slug_key(slug)) is not None:
            raise Invalid(taken)
        self.claim("endpointSlug", slug, taken)


def _check_keys(keys_of_globals: Sequence[str]) -> None:
    for key, times in Counter(keys_of_globals).items():
        if times > 1:
            raise Invalid(f"globals: the key {key} appears twice in the list.")
