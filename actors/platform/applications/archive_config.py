"""The archive configuration of an application: what is archived, where, and after how many days.

Owns the body, its checks, and the secret in it. Does not own which days are archived (`archive_days.py`), nor
the archive (`actors/portability/archives/`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.records.owner import check_ids
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.structs import FORM, Body
from trunkline.actors.core.values.terms import Ids, TagFilters
from trunkline.limits.extras import how_to_install, lacks, library_missing
from trunkline.store.keyring import Keyring

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.actor import Actor

FIELD: Final = "archiveConfig"
SECRET_FIELD: Final = "archiveConfig.s3.secretAccessKey"  # noqa: S105 - the path of the field

Directory = Annotated[
    str,
    Meta(
        max_length=255,
        pattern=r"^([0-9A-Za-z_=-][0-9A-Za-z_=. -]*(/[0-9A-Za-z_=-][0-9A-Za-z_=. -]*)*)?(?!\n)$",
        extra={
            FORM: "names of directories with / between them, of letters, digits, blanks and _ = . -; "
            "none begins with a full stop"
        },
    ),
]
# Bucket and region are parts of the host name that is called, so nothing else may be in them.
_Bucket = Annotated[
    str,
    Meta(
        max_length=63,
        pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?!\n)$",
        extra={FORM: "the name of a bucket: 3 to 63 lower-case letters, digits, . and -"},
    ),
]
_Region = Annotated[
    str,
    Meta(max_length=32, pattern=r"^[a-z0-9-]{1,32}(?!\n)$", extra={FORM: "a region such as eu-central-1"}),
]
_Mode = Literal["all", "whitelist", "blacklist"]


class ArchiveBucket(Body, frozen=True):
    """A bucket of Amazon S3 (or of the compatible service that the operator has chosen)."""

    bucket: _Bucket
    access_key_id: Annotated[str, Meta(min_length=4, max_length=128)] | UnsetType = UNSET
    secret_access_key: Annotated[str, Meta(min_length=4, max_length=128)] | UnsetType = UNSET
    region: _Region | UnsetType = UNSET


class ArchivedExport(Body, frozen=True):
    """What an archived export of the application has beside its records."""

    include_files: bool | UnsetType = UNSET
    include_private_files: bool | UnsetType = UNSET
    include_data_table_rows: bool | UnsetType = UNSET
    include_devices: bool | UnsetType = UNSET
    # Known to clients of this API, and refused with a sentence.
    export_type: Literal["repo"] | UnsetType = UNSET
    credential_name: Annotated[str, Meta(min_length=1, max_length=255)] | UnsetType = UNSET
    repo: dict[str, Any] | UnsetType = UNSET


class ArchiveConfig(Body, frozen=True):
    """What is archived, where, and after how many days. Without `s3` the operator of the server keeps the archive."""

    directory: Directory | UnsetType = UNSET
    mode: _Mode | UnsetType = UNSET
    device_ids: Ids | UnsetType = UNSET
    device_tags: TagFilters | UnsetType = UNSET
    include_devices: bool | UnsetType = UNSET
    include_events: bool | UnsetType = UNSET
    include_data_tables: bool | UnsetType = UNSET
    data_tables_mode: _Mode | UnsetType = UNSET
    data_table_ids: Ids | UnsetType = UNSET
    delay_days: Annotated[int, Meta(ge=1, le=36_500)] | UnsetType = UNSET
    s3: ArchiveBucket | UnsetType = UNSET
    include_application_export: bool | UnsetType = UNSET
    application_export_options: ArchivedExport | UnsetType = UNSET
    # Known to clients of this API, and refused with a sentence.
    gcs: dict[str, Any] | UnsetType = UNSET
    azure: dict[str, Any] | UnsetType = UNSET
    credential_name: Annotated[str, Meta(min_length=1, max_length=255)] | UnsetType = UNSET


_UNSUPPORTED: Final[Mapping[str, str]] = {
    "gcs": "this server archives to its own folder or to s3; leave it out",
    "azure": "this server archives to its own folder or to s3; leave it out",
    "credentialName": "the keys of the bucket belong into s3; leave it out",
}
_EXPORT_UNSUPPORTED: Final[Mapping[str, str]] = {
    "exportType": "the export is a zip file in the archive; leave it out",
    "credentialName": "the export is a zip file in the archive; leave it out",
    "repo": "the export is a zip file in the archive; leave it out",
}


_KEYS: Final = ("accessKeyId", "secretAccessKey")


def archives_otherwise(old: Doc | None, new: Doc) -> bool:
    """Whether days that were archived by the configuration `old` would look otherwise, or lie elsewhere, by `new`."""
    return old is None or _place_and_content(old) != _place_and_content(new)


def _place_and_content(config: Doc) -> tuple[Any, ...]:
    return (
        config.get("directory", ""),
        config.get("s3", {}).get("bucket"),
        config.get("mode", "all"),
        config["deviceIds"],
        config.get("deviceTags", []),
        config.get("includeDevices", True),
        config.get("includeEvents", False),
    )


def stored_config(actor: Actor, config: ArchiveConfig, old: Doc | None) -> Doc:
    """The configuration as it is stored: ids in lower case, the secret encrypted.

    It replaces the configuration `old`; only keys of the same bucket stay if they are left out, because nobody can read
    and send them again. Raises `Invalid` for what this server does not support, and for ids of no record.
    """
    new: Doc = msgspec.to_builtins(config)
    _refuse(new, FIELD, _UNSUPPORTED)
    _refuse(new.get("applicationExportOptions", {}), f"{FIELD}.applicationExportOptions", _EXPORT_UNSUPPORTED)
    for mode, ids, kind, noun in (
        ("mode", "deviceIds", "device", "device"),
        ("dataTablesMode", "dataTableIds", "dataTable", "data table"),
    ):
        new[ids] = [id.lower() for id in new.get(ids, ())]
        # One that was deleted since may stay, so that a configuration can be sent back as it was read.
        check_ids(actor, f"{FIELD}.{ids}", kind, noun, new[ids], known=(old or {}).get(ids, ()))
        selects = new[ids] or (mode == "mode" and new.get("deviceTags"))
        if new.get(mode) == "whitelist" and not selects:
            raise Invalid(
                f"{FIELD}.{mode}: a whitelist needs {ids}{' or deviceTags' if mode == 'mode' else ''}; "
                "an empty one would archive nothing."
            )
    if "s3" in new:
        new["s3"] = _stored_bucket(actor, new["s3"], (old or {}).get("s3", {}))
    return new


def _refuse(doc: Doc, path: str, unsupported: Mapping[str, str]) -> None:
    for name, remedy in unsupported.items():
        if doc.pop(name, None):
            raise Invalid(f"{path}.{name}: {remedy}.")


def _stored_bucket(actor: Actor, new: Doc, old: Doc) -> Doc:
    if lacks("s3"):
        raise Invalid(
            f"{FIELD}.s3: {library_missing('s3')} on this server; its operator can {how_to_install('s3')}."
        )
    same_key = new.get("accessKeyId") in (None, old.get("accessKeyId"))
    if same_key and old.get("bucket") == new["bucket"]:
        new = {name: old[name] for name in _KEYS if name in old} | new
    # Without keys of the caller, the library would look for those of the server's machine.
    for name in _KEYS:
        if name not in new:
            raise Invalid(f"{FIELD}.s3.{name}: is missing; an archive needs both keys of the bucket.")
    if isinstance(new["secretAccessKey"], str):
        keyring = actor.system.component(Keyring)
        new["secretAccessKey"] = keyring.seal(
            new["secretAccessKey"], kind=APPLICATION.name, id=actor.ref.id, field=SECRET_FIELD
        )
    return new
