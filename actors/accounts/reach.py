"""The reach of a device token: the devices that it and its access key can access. Pure rules over documents."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

FilterType = Literal["all", "whitelist", "blacklist", "none"]


def reaches(reach: Reach, device: Mapping[str, Any]) -> bool:
    """Whether a device (a document with its `id` in hexadecimal) is within the reach of a device token."""
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
    filter_type = key["filterType"]
    if filter_type == "all":
        return True
    if filter_type == "none":
        return False
    named = device["id"] in key["deviceIds"] or has_tag(device["tags"], key["deviceTags"])
    return named if filter_type == "whitelist" else not named


def filters_by_tags(key: Mapping[str, Any]) -> bool:
    """Whether the access key allows devices depending on their tags. `key` is empty if there is no access key."""
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
    filter_type: str
    device_ids: list[str]
    device_tags: list[dict[str, Any]]
