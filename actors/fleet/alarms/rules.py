"""Alarm rules as records of an application: what is checked and stored."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.owner import check_ids
from trunkline.actors.core.records.resource import Change, Resource
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.fleet.alarms.conditions import check_condition
from trunkline.actors.fleet.alarms.groups import check_users
from trunkline.actors.fleet.alarms.index import AlarmIndex, is_wide
from trunkline.actors.fleet.alarms.kind import ALARM_GROUP, ALARM_RULE
from trunkline.actors.fleet.alarms.messages import (
    AlarmRulePage,
    AlarmRulePatch,
    AlarmRulePost,
    AlarmRuleView,
)
from trunkline.actors.fleet.alarms.notices import check_notices
from trunkline.actors.fleet.devices.queries.selection import own_filter
from trunkline.actors.platform.jobs.private_calls import may_be_private

_CHOICE: Final = ("deviceIds", "deviceTags", "deviceQuery")


def _check(change: Change) -> None:
    """Check what the types do not say, and the bounds; let the index know after the commit."""
    new, named, owner, old = change.new, change.named, change.owner, change.old or {}
    check_condition(new["condition"], new["durationSeconds"])
    if new.get("deviceQuery") is not None:
        own_filter(new["deviceQuery"], "deviceQuery")
    for field in _CHOICE:
        if field in new and not new[field]:
            del new[field]
    if new.get("deviceIds"):
        new["deviceIds"] = list(dict.fromkeys(id.lower() for id in new["deviceIds"]))
        if "deviceIds" in named and not change.is_import:
            # One that was deleted since may stay, so that a rule can be sent back as it was read; people likewise.
            check_ids(
                owner, "deviceIds", "device", "device", new["deviceIds"], known=old.get("deviceIds", ())
            )
    if new.get("notify") and "notify" in named:
        check_notices(new["notify"], partial(may_be_private, owner.system))
        if not change.is_import:
            _check_people(owner, new["notify"]["steps"], (old.get("notify") or {}).get("steps", ()))
    index = owner.system.component(AlarmIndex)
    if change.old is None:
        _check_number(owner)
    if is_wide(new) and (change.old is None or not is_wide(change.old)):
        most = owner.system.limits.wide_alarm_rules_max
        if index.wide(owner.ref.id) >= most:
            raise Invalid(
                f"deviceQuery: {most} alarm rules choose their devices by a query, or are about all devices, which is "
                "the most of an application; choose the devices by deviceIds or deviceTags."
            )
    owner.after_commit(partial(index.set, owner.ref.id, change.id, dict(new)))


def _check_people(owner: Actor, steps: list[Doc], old_steps: Iterable[Doc]) -> None:
    """Raise `Invalid` unless the users who are new in the steps may read the application, and new groups are there."""
    users, groups = (
        {id for step in old_steps for id in step.get(field, ())} for field in ("userIds", "groupIds")
    )
    for position, step in enumerate(steps):
        at = f"notify.steps[{position}]"
        check_users(owner, step.get("userIds", ()), f"{at}.userIds", known=users)
        for id in set(step.get("groupIds", ())) - groups:
            if not records.exists(owner.system.journal, ALARM_GROUP, owner.ref.id, bytes.fromhex(id)):
                raise Invalid(f"{at}.groupIds: there is no alarm group {id} in this application.")


def _check_number(owner: Actor) -> None:
    most = owner.system.limits.alarm_rules_max
    if owner.system.component(AlarmIndex).count(owner.ref.id) >= most:
        raise Invalid(
            f"The application has {most} alarm rules, which is the most; "
            "delete some, or let one rule be about more devices."
        )


def _before_delete(owner: Actor, id: bytes, _doc: Doc) -> None:
    owner.after_commit(partial(owner.system.component(AlarmIndex).set, owner.ref.id, id, None))


ALARM_RULES: Final = Resource(
    name="alarmRule",
    kind=ALARM_RULE,
    post=AlarmRulePost,
    patch=AlarmRulePatch,
    page=AlarmRulePage,
    view=AlarmRuleView,
    check=_check,
    before_delete=_before_delete,
)
