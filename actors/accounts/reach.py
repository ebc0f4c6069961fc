"""What a device token reaches: which devices an access key allows. Pure rules over documents."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

FilterType = Literal["all", "whitelist", "blacklist", "none"]


def reaches(reach: Reach, device: Mapping[str, Any]) -> bool:
    """Whether a device (a document with its `id` in hexadecimal) lies within the reach of a device token."""
    if reach.device_id == device["id"]:
        return True
    key = {
        "filterType": reach.filter_type,
        "deviceIds": reach.device_ids,
        "deviceTags": reach.device_tags,
    }
    return key_admits(key, device)


def key_admits(key: Mapping[str, Any], device: Mapping[str, Any]) -> bool:
    """Whether an access key allows a device (a document with its `id` in hexadecimal)."""
    chosen = key["filterType"]
    if chosen == "all":
        return True
    if chosen == "none":
        return False
    named = device["id"] in key["deviceIds"] or has_tag(device["tags"], key["deviceTags"])
    return named if chosen == "whitelist" else not named


def chooses_by_tags(key: Mapping[str, Any]) -> bool:
    """Whether the devices of an access key depend on their tags. `key` is empty where there is none."""
    return bool(key) and key["filterType"] in ("whitelist", "blacklist") and bool(key["deviceTags"])


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
    chosen = key.get("addressFilterType", "all")
    if chosen == "all":
        return True
    try:
        caller = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(caller, ipaddress.IPv6Address) and caller.ipv4_mapped is not None:
        # On a socket for both versions an IPv4 caller arrives as ::ffff:192.0.2.7.
        caller = caller.ipv4_mapped
    listed = any(caller in ipaddress.ip_network(entry, strict=False) for entry in key["addresses"])
    return listed if chosen == "whitelist" else not listed


class Reach(msgspec.Struct, frozen=True, kw_only=True):
    """What a device token sees of its application: its own device, and those that its key allows.

    Ids are in hexadecimal, as documents carry them.
    """

    device_id: str
    filter_type: str
    device_ids: list[str]
    device_tags: list[dict[str, Any]]
