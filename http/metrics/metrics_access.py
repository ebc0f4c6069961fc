"""Who may read the metrics: the figures of the whole server, which tell tenants of each other.

An operator with a token of their own, by `Authorization`; and, unless the setting says otherwise, who asks from the
machine itself without a token. What a proxy passes on comes from the machine too, so a call with the headers of a proxy
does not count as one of the machine.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any, Final

from trunkline.actors.core.values.errors import Forbidden
from trunkline.http.calls.dispatch import Dispatcher
from trunkline.http.calls.operators import HINT, check_operator

_OF_PROXIES: Final = frozenset({b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip"})
_SCOPES: Final = frozenset({"all.User", "all.User.read"})


def check_reader(dispatcher: Dispatcher, scope: Mapping[str, Any], metrics_for: str) -> None:
    """Raise unless the request of an ASGI scope may read the metrics. `metrics_for` is the setting."""
    headers: dict[bytes, bytes] = dict(scope["headers"])
    if metrics_for == "all":
        return
    token = headers.get(b"authorization")
    if token is None and metrics_for == "local" and _is_local(scope, headers):
        return
    principal = dispatcher.tokens.authenticate(token)
    if principal.user_id is None or principal.scopes.isdisjoint(_SCOPES):
        raise Forbidden(f"{HINT} The token has to be one of theirs, with the scope all.User.read.")
    check_operator(dispatcher.system, principal)


def _is_local(scope: Mapping[str, Any], headers: Mapping[bytes, bytes]) -> bool:
    client = scope.get("client")
    if not client or not _OF_PROXIES.isdisjoint(headers):
        return False
    try:
        return ipaddress.ip_address(client[0]).is_loopback
    except ValueError:
        return False
