"""Bearer tokens: signing, verifying, remembering, and the scopes that they may carry.

A token is a JWT signed with the data directory's secret (HS256). Verifying one costs about 20 us with the
records behind it, so the result is remembered by the token's text; `System.authority_epoch` voids all of it
at once when a key, a token, a password, a device or an application changes, which is rare. So a revoked key
ends access with the next request, and a valid token costs a dictionary look-up.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import jwt

from trunkline.actors import authority
from trunkline.actors.authority import Principal
from trunkline.actors.runtime.system import System
from trunkline.actors.values.errors import Forbidden, Invalid, Unauthorized
from trunkline.http.calls.route import Route, RouteTable

ALGORITHM = "HS256"
TOKEN_CHARS_MAX = 8192
SCOPES_CHARS_MAX = TOKEN_CHARS_MAX * 3 // 4 - 1024
"""A token travels in the head of each call. Its scopes stand in it in base64, beside 1 KiB of all else."""

FAMILIES = frozenset(
    {
        "all.User",
        "all.User.read",
        "all.User.cli",
        "all.Organization",
        "all.Organization.read",
        "all.Application",
        "all.Application.read",
        "all.Application.cli",
        "all.Device",
        "all.Device.read",
    }
)
DEVICE_SCOPES = frozenset(
    {
        "all.Device",
        "all.Device.read",
        "data.timeSeriesQuery",
        "data.lastValueQuery",
        "device.commandStream",
        "device.get",
        "device.getCompositeState",
        "device.getState",
        "device.stateStream",
        "device.getLogEntries",
        "device.getCommand",
        "device.sendState",
        "device.sendCommand",
        "device.setConnectionStatus",
        "devices.get",
        "devices.getCompositeState",
        "devices.sendCommand",
    }
)
"""What a device may ask for at log-in."""

_WRITING = frozenset({"all.User", "all.Organization", "all.Application"})
"""Families that hold everything of a resource, also what it learns to do later."""

_READING = _WRITING | {"all.User.read", "all.Organization.read", "all.Application.read"}
_WITHIN: dict[str, frozenset[str]] = {
    "all.User.read": frozenset({"all.User"}),
    "all.User.cli": frozenset({"all.User"}),
    "all.Organization": frozenset({"all.User"}),
    "all.Organization.read": frozenset({"all.Organization", "all.User", "all.User.read"}),
    "all.Application": frozenset({"all.Organization", "all.User"}),
    "all.Application.read": _READING - {"all.Application.read"},
    "all.Application.cli": _WRITING | {"all.User.cli"},
    "all.Device": _WRITING,
    "all.Device.read": _READING | {"all.Device"},
}
"""For each family the families that reach at least as much."""


class Tokens:
    """Signs and verifies tokens for one data directory."""

    def __init__(self, system: System, secret: bytes, table: RouteTable) -> None:
        self._system = system
        self._secret = secret
        self._epoch = -1
        self._cache: dict[bytes, Principal] = {}
        self._rows: dict[str, list[Route]] = {}
        for route in table.routes:
            if route.access != "none":
                for scope in (route.operation, f"{route.operation.partition('.')[0]}.*"):
                    self._rows.setdefault(scope, []).append(route)
        self.verified = 0

    # Making.

    def issue(self, claims: dict[str, Any], scopes: Iterable[str], now_ms: int, ttl_s: float | None) -> str:
        """A signed token for `claims` (`typ`, `sub`, ...), valid for `ttl_s` seconds (None: no expiry)."""
        payload = {**claims, "scope": sorted(scopes), "iat": now_ms / 1000}
        if ttl_s is not None:
            payload["exp"] = now_ms / 1000 + ttl_s
        return jwt.encode(payload, self._secret, algorithm=ALGORITHM)

    def checked_scopes(self, wanted: list[str], *, kind: str, field: str) -> frozenset[str]:
        """`wanted` as scopes that a token of this kind (user, device, application) may carry.

        Raises `Invalid` naming the first one that does not exist or does not belong there.
        """
        for position, scope in enumerate(wanted):
            where = f"{field}[{position}]: {scope[:100]!r}"
            rows = self._rows.get(scope)
            if scope not in FAMILIES and rows is None:
                raise Invalid(f"{where} is not a scope of this server; `trunkline routes` lists them.")
            if kind == "device" and scope not in DEVICE_SCOPES:
                raise Invalid(
                    f"{where} is not for devices; a device asks for all.Device or for operations of devices."
                )
            if kind == "application" and (
                scope.startswith(("all.User", "all.Organization"))
                or (rows is not None and all(row.reach == "user" for row in rows))
            ):
                raise Invalid(
                    f"{where} is not for applications; an application token reaches only its application."
                )
        if not wanted:
            raise Invalid(f"{field}: is empty; name at least one scope or leave the field out.")
        scopes = frozenset(wanted)
        if sum(len(scope) + 3 for scope in scopes) > SCOPES_CHARS_MAX:
            raise Invalid(
                f"{field}: {len(scopes)} scopes are too many for one token; "
                "name whole resources such as device.*, or a family such as all.Application."
            )
        return scopes

    def covers(self, own: frozenset[str], wanted: str) -> bool:
        """Whether a bearer of the scopes `own` may hand out a token with the scope `wanted`.

        True where every call that `wanted` lets pass is let pass by `own` as well.
        """
        if wanted in own:
            return True
        if wanted in FAMILIES:
            return not own.isdisjoint(_WITHIN.get(wanted, ()))
        rows = self._rows.get(wanted, [])
        if wanted.endswith(".*"):
            # Single operations do not add up to the resource, which may have more of them one day.
            own &= _WRITING
        return bool(rows) and not any(own.isdisjoint(row.scopes) for row in rows)

    # Verifying.

    def caller(self, header: bytes | None) -> Principal:
        """Who calls with this `Authorization` header now. Raises `Unauthorized`, also where there is none."""
        system = self._system
        if self._epoch != system.authority_epoch:
            self._cache.clear()
            self._epoch = system.authority_epoch
        found = self._cache.get(header or b"")
        if found is None:
            found = self._verify(bearer(header))
            # Tags change without a word to the cache, so a key that chooses by them is judged anew for each call.
            if not authority.chooses_by_tags(found.key):
                if len(self._cache) >= system.limits.token_cache_length_max:
                    del self._cache[next(iter(self._cache))]
                self._cache[header or b""] = found
        if found.expires_ms is not None and system.clock.wall_ms() >= found.expires_ms:
            self._cache.pop(header or b"", None)
            raise Unauthorized("The token has expired; log in again.")
        return found

    def _verify(self, token: str) -> Principal:
        if len(token) > TOKEN_CHARS_MAX:
            raise Unauthorized("The token is not one of this server.")
        self.verified += 1
        try:
            # Times are checked against the system's clock, not against the one of the library.
            claims = jwt.decode(
                token,
                self._secret,
                algorithms=[ALGORITHM],
                options={"verify_exp": False, "verify_iat": False, "require": ["sub", "iat", "scope", "typ"]},
            )
        except jwt.InvalidTokenError:
            raise Unauthorized("The token is not one of this server; log in to get one.") from None
        with self._system.store.snapshot() as snapshot:
            return authority.resolve(snapshot, claims, frozenset(claims["scope"]))


def bearer(header: bytes | None) -> str:
    """The token of an `Authorization` header. Raises `Unauthorized` where there is none."""
    if header is None:
        raise Unauthorized("The request has no token; send it as `Authorization: Bearer <token>`.")
    scheme, _, token = header.decode("latin1").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthorized("The Authorization header is not `Bearer <token>`.")
    return token.strip()


def check_scope(route: Route, principal: Principal) -> None:
    """Raise `Forbidden` where the token has none of the scopes that the operation accepts."""
    if principal.scopes.isdisjoint(route.scopes):
        raise Forbidden(
            f"The token has no scope for {route.operation}; it needs one of {', '.join(sorted(route.scopes))}."
        )
    if route.reach == "user" and principal.kind != "user":
        raise Forbidden(
            f"{route.operation} is about a user; the token of a {principal.kind} does not reach it."
        )
    if principal.kind == "device" and route.device == "no":
        raise Forbidden(f"{route.operation} is not open to devices.")
