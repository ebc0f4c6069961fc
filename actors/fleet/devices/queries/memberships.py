"""The groups of an experience to which devices belong, and the users in them, for queries over devices.

A device belongs to a group by its id, by a tag, or by the query of the group, and then also to all groups above it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, Final

from trunkline.actors.core.query.text import parse_query
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.page import Match
from trunkline.actors.fleet.devices.record.kind import EXPERIENCE_GROUP
from trunkline.actors.people.accounts.reach import has_tag
from trunkline.store.snapshot import Snapshot

MEMBERSHIPS: Final = frozenset({"experienceGroupId", "experienceUserId"})
"""The fields of queries over devices that depend on groups; the query of a group has none of them."""


class Memberships:
    """The groups of one application. They are read when the first device asks.

    `compile` makes a predicate of the query of a group; None if all devices match.
    """

    def __init__(
        self, snapshot: Snapshot, application: bytes, compile: Callable[[Any], Match | None]
    ) -> None:
        self._snapshot = snapshot
        self._application = application
        self._compile = compile

    def groups_of(self, device: Mapping[str, Any]) -> list[str]:
        """The ids of the groups to which a device (a document with its `id`) belongs."""
        return list(dict.fromkeys(above for id in self._direct(device) for above in self._upwards(id)))

    def users_of(self, device: Mapping[str, Any]) -> list[str]:
        """The ids of the users in these groups."""
        return [user for id in self.groups_of(device) for user in self._groups[id]["experienceUserIds"]]

    @cached_property
    def _groups(self) -> dict[str, Doc]:
        return {
            id.hex(): doc for id, doc in records.scan(self._snapshot, EXPERIENCE_GROUP, self._application)
        }

    @cached_property
    def _by_device(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for id, group in self._groups.items():
            for device in group["deviceIds"]:
                found.setdefault(device, []).append(id)
        return found

    @cached_property
    def _matches(self) -> list[tuple[str, Match]]:
        """The groups that have devices by tag or by query, each with its predicate."""
        found: list[tuple[str, Match]] = []
        for id, group in self._groups.items():
            if group["deviceTags"]:
                found.append((id, _by_tags(group["deviceTags"])))
            if group.get("deviceQueryJson"):
                match = self._compile(parse_query(group["deviceQueryJson"], "deviceQueryJson"))
                found.append((id, match or (lambda _device: True)))
        return found

    def _direct(self, device: Mapping[str, Any]) -> Iterable[str]:
        return [
            *self._by_device.get(device.get("id", ""), ()),
            *(id for id, matches in self._matches if matches(device)),
        ]

    def _upwards(self, id: str | None) -> list[str]:
        found: list[str] = []
        while id is not None and id in self._groups and id not in found:
            found.append(id)
            id = self._groups[id].get("parentId")
        return found


def _by_tags(filters: list[dict[str, str]]) -> Match:
    return lambda device: has_tag(device["tags"], filters)
