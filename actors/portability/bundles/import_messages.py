"""Imports: the options of both calls."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.records.portable import ResourceName
from trunkline.actors.core.values.structs import Body
from trunkline.actors.core.values.terms import Id
from trunkline.actors.platform.jobs.messages import CallbackUrl
from trunkline.actors.portability.bundles.plan import Conflict

_Url = Annotated[str, Meta(max_length=1024)]
_Include = Annotated[list[ResourceName], Meta(max_length=100)]


class NewApplicationOptions(Body, frozen=True):
    """How a bundle becomes a new application. `include` names the resources that are taken, by default all."""

    import_url: _Url | UnsetType = UNSET
    callback_url: CallbackUrl | UnsetType = UNSET
    include: _Include | UnsetType = UNSET
    force_job: bool = False


class IntoApplicationOptions(NewApplicationOptions, frozen=True):
    """How a bundle is imported into an application."""

    from_application_id: Id | UnsetType = UNSET
    conflict_behavior: Conflict = "create"
    dry_run: bool = False
    credential_name: Annotated[str, Meta(max_length=255)] | UnsetType = UNSET
    repo: dict[str, Any] | UnsetType = UNSET
