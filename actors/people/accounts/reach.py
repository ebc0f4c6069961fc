"""The reach of a device token: the devices that it and its access key can access. Pure rules over documents."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

FilterType = Literal["all", "whitelist", "blacklist", "none"]

TOPIC_FILTER: Final = "filtersTopics"
"""The field of a key's record that is true if its `filterType` is about topics. It is shown to nobody."""


KEY_ENDS_ACCESS: Final = frozenset(
    {"status", "filterType", "pubTopics", "subTopics", TOPIC_FILTER, "deviceIds", "deviceTags"}
)
"""The fields of access keys and certificates of devices whose change may end what they allow."""


def reaches(reach: Reach, device: Mapping[str, Any]) -> bool:
    """Whether a device (a document with its `id` in hexadecimal) is within the reach of a device token."""
    return reach.device_id == device["id"] or _admits(
        reach.device_filter, reach.device_ids, reach.device_tags, device
    )


def key_admits(key: Mapping[str, Any], device: Mapping[str, Any]) -> bool:
    """Whether an access key allows a device (a document with its `id` in hexadecimal)."""
    return _admits(device_filter(key), key["deviceIds"], key["deviceTags"], device)


def device_filter(key: Mapping[str, Any]) -> FilterType:
    """How `deviceIds` and `deviceTags` of an access key are meant: they name its devices, or there are none.

    `filterType` is about topics (a record with `TOPIC_FILTER`). In older records it was about devices too, and until
    somebody sets it they allow what they allowed.
    """
    if not key.get(TOPIC_FILTER):
        filter_type: FilterType = key["filterType"]
        return filter_type
    return "whitelist" if key["deviceIds"] or key["deviceTags"] else "all"


def older_filter(key: Mapping[str, Any]) -> FilterType | None:
    """The filter of an older record, if the record allows other devices than those that it lists."""
    found = device_filter(key)
    selects = bool(key["deviceIds"] or key["deviceTags"])
    return found if found == "none" or (found == "blacklist" and selects) else None


def filters_by_tags(key: Mapping[str, Any]) -> bool:
    """Whether the access key allows devices depending on their tags. `key` is empty if there is no access key."""
    return bool(key) and bool(key["deviceTags"]) and device_filter(key) in ("whitelist", "blacklist")


def _admits(
    filter_type: FilterType,
    ids: Sequence[str],
    tags: Sequence[Mapping[str, str]],
    device: Mapping[str, Any],
) -> bool:
    if filter_type in ("all", "none"):
        return filter_type == "all"
    named = device["id"] in ids or has_tag(device["tags"], tags)
    return named if filter_type == "whitelist" else not named


def has_tag(tags: Sequence[Mapping[str, str]], filters: Sequence[Mapping[str, str]]) -> bool:
    """Whether one of the filters (key, value, or both) matches one of the tags."""
    return any(
        all(tag[part] == wanted for part, wanted in wanted_parts.items())
        for wanted_parts in filters
        if wanted_parts
        for tag in tags
    )


def key_admits_address(key: Mapping[str, Any], address: str) -> bool:
    """Whether an access key may be used from this network address (its list names addresses and networks)."""
    filter_type = key.get("addressFilterType", "all")
    if filter_type == "all":
        return True
    try:
        caller = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(caller, ipaddress.IPv6Address) and caller.ipv4_mapped is not None:
        # On a socket for both IP versions the address of an IPv4 caller has the form ::ffff:192.0.2.7.
        caller = caller.ipv4_mapped
    listed = any(caller in ipaddress.ip_network(entry, strict=False) for entry in key["addresses"])
    return listed if filter_type == "whitelist" else not listed


class Reach(msgspec.Struct, frozen=True, kw_only=True):
    """The devices that a device token can access: its own device, and those that its key allows.

    Ids are in hexadecimal, as in documents.
    """

    device_id: str
    device_filter: FilterType
    device_ids: list[str]
    device_tags: list[dict[str, Any]]
