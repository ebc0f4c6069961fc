"""Dashboards as records, of applications and of users: what is stored, checked and shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, cast

import msgspec

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.mandate import stored_mandates
from trunkline.actors.core.records.read_context import Ids
from trunkline.actors.core.records.resource import Change, Resource
from trunkline.actors.core.runtime.threads import SHORT, in_thread
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
from trunkline.actors.presentation.dashboards.report_schedule import (
    SCHEDULER,
    adopt_reports,
    check_receivers,
    check_schedules,
    forget_reports,
    schedule_reports,
)


async def _prepare(body: DashboardPost | DashboardPatch) -> DashboardPost | DashboardPatch:
    """Check the schedules of reports, and return the body with the hash of the password instead of the password, so
    that no actor sees the password."""
    if isinstance(body.password, str):
        body = msgspec.structs.replace(body, password=await hash_password(body.password))
    given: Any = body
    if given.report_configs:
        await in_thread(SHORT, check_schedules, given.report_configs)
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
    if named.get("reportConfigs") is not None or (change.old is not None and "reportConfigs" in named):
        check_receivers(change, new["reportConfigs"])
        schedule_reports(change)


def _protected(_ids: Ids, doc: Doc, _query: object) -> Doc:
    return {"isPasswordProtected": "passwordHash" in doc}


DASHBOARDS: Final = Resource(
    name="applicationDashboard",
    kind=DASHBOARD,
    post=DashboardPost,
    patch=DashboardPatch,
    page=DashboardPage,
    view=DashboardView,
    hidden=frozenset({"passwordHash", AUTHORS, SCHEDULER}),
    check=_check,
    before_delete=forget_reports,
    adopted=adopt_reports,
    prepare=_prepare,
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
