"""Network addresses: how that of a peer is written, and what counts as one where something is bounded by address."""

from __future__ import annotations

import ipaddress

_IPV6_NETWORK_BITS = 64
"""Every household or server has at least a /64, so an attacker can change addresses within it at no cost."""


def plain_address(address: str) -> str:
    """The address of a peer as it is written elsewhere.

    On a socket for both IP versions the address of an IPv4 peer has the form ::ffff:192.0.2.7.
    """
    if not address.startswith("::ffff:"):
        return address
    try:
        mapped = ipaddress.IPv6Address(address).ipv4_mapped
    except ValueError:
        return address
    return address if mapped is None else str(mapped)


def forwarded_address(entry: str) -> str | None:
    """The address in an entry of X-Forwarded-For, to which some proxies append a port; None where it is none."""
    host = entry.strip()
    if host.startswith("["):
        host = host[1:].partition("]")[0]
    elif host.count(":") == 1:
        host = host.partition(":")[0]
    try:
        return None if "%" in host else plain_address(str(ipaddress.ip_address(host)))
    except ValueError:
        return None


def network_of(address: str) -> str:
    """What is counted as one address: an IPv4 address, the /64 of an IPv6 address, anything else unchanged."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((int(parsed), _IPV6_NETWORK_BITS), strict=False))
    return str(parsed)
