"""What counts as one network address where something is bounded by address."""

from __future__ import annotations

import ipaddress

_IPV6_NETWORK_BITS = 64
"""Every household or server has at least a /64, so an attacker can change addresses within it at no cost."""


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
