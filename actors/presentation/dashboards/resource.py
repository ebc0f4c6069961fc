"""Dashboards as records, of applications and of users: what is stored, checked and shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, cast

import msgspec

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.mandate import stored_mandates
from trunkline.actors.core.records.read_context import Ids
from trunkline.actors.core.records.resource import Change, Resource
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.people.accounts.passwords import hash_password
from trunkline.actors.presentation.dashboards.checks import check_blocks, check_parameters
from trunkline.actors.presentation.dashboards.holder import Holder, HolderKind
from trunkline.actors.presentation.dashboards.kind import AUTHORS, DASHBOARD, SHOWING
from trunkline.actors.presentation.dashboards.messages import (
    DashboardPage,
    DashboardPatch,
    DashboardPost,
    DashboardView,
    OwnedDashboardPage,
    OwnedDashboardPost,
    OwnedDashboardView,
)


async def _hash(body: DashboardPost | DashboardPatch) -> DashboardPost | DashboardPatch:
    """Return the body with the hash of the password instead of the password, so that no actor sees the password."""
    if isinstance(body.password, str):
        return msgspec.structs.replace(body, password=await hash_password(body.password))
    return body


def _check(change: Change) -> None:
    """Check what the types do not say: references, queries, names of parameters, receivers of reports."""
    new, named = change.new, change.named
    for field in ("blocks", "reportConfigs", "contextConfiguration"):
        new.setdefault(field, [])
    if change.old is None or SHOWING & named.keys():
        new[AUTHORS] = stored_mandates(change.by.mandates)
    if "password" in named:
        new.pop("password", None)
        new.pop("passwordHash", None)
        if named["password"] is not None:
            new["passwordHash"] = named["password"]
    holder = Holder(cast("HolderKind", change.owner.kind), change.owner.ref.id)
    check_blocks(change, holder)
    check_parameters(change, holder)
    for position, report in enumerate(new["reportConfigs"]):
        if not ("toEmail" in report or "callbackUrl" in report):
            raise Invalid(f"reportConfigs[{position}]: goes nowhere; give toEmail or callbackUrl.")


def _protected(_ids: Ids, doc: Doc, _query: object) -> Doc:
    return {"isPasswordProtected": "passwordHash" in doc}


DASHBOARDS: Final = Resource(
    name="applicationDashboard",
    kind=DASHBOARD,
    post=DashboardPost,
    patch=DashboardPatch,
    page=DashboardPage,
    view=DashboardView,
    hidden=frozenset({"passwordHash", AUTHORS}),
    check=_check,
    prepare=_hash,
    derive=_protected,
)

USER_DASHBOARDS: Final = replace(
    DASHBOARDS,
    name="dashboard",
    post=OwnedDashboardPost,
    page=OwnedDashboardPage,
    view=OwnedDashboardView,
    parent="user",
)
