"""Bearer tokens: signing, verifying, remembering, and the scopes that they may carry.

A token is a JWT signed with the data directory's secret (HS256). Verifying one costs about 20 us with the
records behind it, so the result is remembered by the token's text until one of those records changes in a way that may
end access (`runtime/revocations.py`). So a revoked key ends access with the next request, a valid token costs a
dictionary look-up, and a change costs nobody else anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import jwt

from trunkline.actors import authority
from trunkline.actors.accounts.reach import filters_by_tags
from trunkline.actors.authority import Principal
from trunkline.actors.runtime.system import System
from trunkline.actors.values.errors import Forbidden, Invalid, Unauthorized
from trunkline.http.calls.route import Route

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

    def __init__(self, system: System, secret: bytes, routes: Iterable[Route]) -> None:
        self._system = system
        self._secret = secret
        self._cache: dict[bytes, Principal] = {}
        self._rows: dict[str, list[Route]] = {}
        for route in routes:
            if route.access != "none":
                for scope in (route.operation, f"{route.operation.partition('.')[0]}.*"):
                    self._rows.setdefault(scope, []).append(route)
        self._device_scopes = frozenset({"all.Device", "all.Device.read"}) | {
            row.operation for rows in self._rows.values() for row in rows if row.device != "no"
        }
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
            if kind == "device" and scope not in self._device_scopes:
                raise Invalid(
                    f"{where} is not for devices; a device asks for all.Device or for operations of devices."
                )
            if kind == "application" and (
                scope.startswith(("all.User", "all.Organization"))
                or (rows is not None and all(row.area == "user" for row in rows))
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
        key = header or b""
        found = self._cache.get(key)
        if found is None or found.revoked:
            if found is not None:
                self._drop(key)
            found = self._verify(bearer(header))
            # A key that chooses devices by their tags is judged anew for each call: any device's tags may change.
            if not filters_by_tags(found.key):
                if len(self._cache) >= self._system.limits.token_cache_length_max:
                    self._drop(next(iter(self._cache)))
                self._cache[key] = found
                self._system.revocations.hold(found)
        if found.expired(self._system.clock.wall_ms()):
            self._drop(key)
            raise Unauthorized("The token has expired; log in again.")
        return found

    def _drop(self, key: bytes) -> None:
        dropped = self._cache.pop(key, None)
        if dropped is not None:
            self._system.revocations.release(dropped)

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
    if route.area == "user" and principal.kind != "user":
        raise Forbidden(
            f"{route.operation} is about a user; the token of a {principal.kind} does not reach it."
        )
    if principal.kind == "device" and route.device == "no":
        raise Forbidden(f"{route.operation} is not open to devices.")
