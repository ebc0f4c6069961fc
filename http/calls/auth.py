"""Bearer tokens: signing, verifying and caching them, and the scopes that they may have.

A token is claims that are signed with the secret of the data directory (`core/values/signed_claims.py`). Verifying one
and reading its records costs about 20 us, so the result is cached by the text of the token until one of those records
changes in a way that may end access (`core/runtime/revocations.py`). A revoked key therefore ends access with the next
request, a valid token costs a dictionary look-up, and a change does not affect other tokens.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from trunkline.actors.access import authority
from trunkline.actors.access.authority import Principal
from trunkline.actors.core.runtime.system import System
from trunkline.actors.core.values.errors import Forbidden, Invalid, Unauthorized
from trunkline.actors.core.values.signed_claims import NotSigned, SignedClaims, key_for
from trunkline.actors.people.accounts.reach import filters_by_tags
from trunkline.actors.people.accounts.scopes import USER_AREAS, no_scope
from trunkline.actors.people.accounts.sessions import session_claims
from trunkline.http.calls.route import Route

TOKEN_CHARS_MAX = 8192
SCOPES_CHARS_MAX = TOKEN_CHARS_MAX * 3 // 4 - 1024
"""A token is sent in a header of each call. It holds its scopes in base64, and 1 KiB of other data."""

SCOPE_FAMILIES = frozenset(
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
_WRITE_FAMILIES = frozenset({"all.User", "all.Organization", "all.Application"})
"""Families that include every operation of a resource, also operations that are added later."""

_READ_FAMILIES = _WRITE_FAMILIES | {"all.User.read", "all.Organization.read", "all.Application.read"}
_INCLUDED_IN: dict[str, frozenset[str]] = {
    "all.User.read": frozenset({"all.User"}),
    "all.User.cli": frozenset({"all.User"}),
    "all.Organization": frozenset({"all.User"}),
    "all.Organization.read": frozenset({"all.Organization", "all.User", "all.User.read"}),
    "all.Application": frozenset({"all.Organization", "all.User"}),
    "all.Application.read": _READ_FAMILIES - {"all.Application.read"},
    "all.Application.cli": _WRITE_FAMILIES | {"all.User.cli"},
    "all.Device": _WRITE_FAMILIES,
    "all.Device.read": _READ_FAMILIES | {"all.Device"},
}
"""For each family, the families that include it."""


class Tokens:
    """Signs and verifies tokens for one data directory."""

    def __init__(self, system: System, secret: bytes, routes: Iterable[Route]) -> None:
        self._system = system
        self._signed = SignedClaims(secret)
        remembering = key_for(secret, b"login that a browser remembers")
        self._remembered = SignedClaims(remembering)
        self.login_cookie: Final = f"trunkline_{key_for(remembering, b'name')[:4].hex()}"
        """The name of the cookie of such a login: another one for each server, as ports of one host share cookies."""
        self._cache: dict[bytes, Principal] = {}
        self._routes_by_scope: dict[str, list[Route]] = {}
        for route in routes:
            if route.access != "none":
                for scope in (route.scope, f"{route.scope.partition('.')[0]}.*"):
                    self._routes_by_scope.setdefault(scope, []).append(route)
        self._device_scopes = frozenset({"all.Device", "all.Device.read"}) | {
            route.scope
            for routes in self._routes_by_scope.values()
            for route in routes
            if route.device != "no"
        }
        self.verified = 0

    # Issuing.

    def issue(self, claims: dict[str, Any], scopes: Iterable[str], now_ms: int, ttl_s: float | None) -> str:
        """Return a signed token for `claims` (`typ`, `sub`, ...), valid for `ttl_s` seconds (None: no expiry)."""
        return self._issue(self._signed, claims, scopes, now_ms, ttl_s)

    def _issue(
        self,
        signed: SignedClaims,
        claims: dict[str, Any],
        scopes: Iterable[str],
        now_ms: int,
        ttl_s: float | None,
    ) -> str:
        payload = {**claims, "scope": sorted(scopes), "iat": now_ms / 1000}
        if ttl_s is not None:
            payload["exp"] = now_ms / 1000 + ttl_s
        return signed.sign(payload)

    def remember(self, principal: Principal, now_ms: int) -> str:
        """Return the login of a user's token as a text that is no token: only `remembered` takes it."""
        assert principal.user_id is not None
        assert principal.session is not None
        subject = {"typ": "user", "sub": principal.user_id.hex(), **session_claims(principal.session)}
        return self._issue(self._remembered, subject, principal.scopes, now_ms, principal.ttl_s)

    def remembered(self, text: str) -> Principal:
        """Return the caller whose login `remember` has made a text of. Raises `Unauthorized` if it has ended."""
        principal = self._verify(text, self._remembered)
        if principal.expired(self._system.clock.wall_ms()):
            raise Unauthorized("The login that this browser remembers has expired; log in again.")
        return principal

    def checked_scopes(self, wanted: list[str], *, kind: str, field: str) -> frozenset[str]:
        """Return `wanted` as the scopes of a token of this kind (user, device, application).

        Raises `Invalid` with the first one that does not exist or that this kind of token cannot have.
        """
        for position, scope in enumerate(wanted):
            where = f"{field}[{position}]: {scope[:100]!r}"
            routes = self._routes_by_scope.get(scope)
            if scope not in SCOPE_FAMILIES and routes is None:
                raise Invalid(f"{where} is not a scope of this server; `trunkline routes` lists them.")
            if kind == "device" and scope not in self._device_scopes:
                raise Invalid(
                    f"{where} is not for devices; a device asks for all.Device or for operations of devices."
                )
            if kind == "application" and (
                scope.startswith(("all.User", "all.Organization"))
                or (routes is not None and all(route.area in USER_AREAS for route in routes))
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
        """Whether a caller with the scopes `own` may create a token with the scope `wanted`.

        True if `own` allows every call that `wanted` allows.
        """
        if wanted in own:
            return True
        if wanted in SCOPE_FAMILIES:
            return not own.isdisjoint(_INCLUDED_IN.get(wanted, ()))
        routes = self._routes_by_scope.get(wanted, [])
        if wanted.endswith(".*"):
            # Single operations never cover the whole resource, because operations may be added to it later.
            own &= _WRITE_FAMILIES
        return bool(routes) and not any(own.isdisjoint(route.scopes) for route in routes)

    # Verifying.

    def authenticate(self, header: bytes | None) -> Principal:
        """Return the caller with this `Authorization` header. Raises `Unauthorized`, also if there is no header."""
        key = header or b""
        self._system.revocations.follow()
        principal = self._cache.get(key)
        if principal is None or principal.revoked:
            if principal is not None:
                self._drop(key)
            principal = self._verify(bearer(header), self._signed)
            # A key that selects devices by their tags is not cached: the tags of any device may change.
            if not filters_by_tags(principal.key):
                if len(self._cache) >= self._system.limits.token_cache_length_max:
                    self._drop(next(iter(self._cache)))
                self._cache[key] = principal
                self._system.revocations.hold(principal)
        if principal.expired(self._system.clock.wall_ms()):
            self._drop(key)
            raise Unauthorized("The token has expired; log in again.")
        return principal

    def _drop(self, key: bytes) -> None:
        dropped = self._cache.pop(key, None)
        if dropped is not None:
            self._system.revocations.release(dropped)

    def _verify(self, token: str, signed: SignedClaims) -> Principal:
        if len(token) > TOKEN_CHARS_MAX:
            raise Unauthorized("The token is not one of this server.")
        self.verified += 1
        try:
            claims = signed.read(token, "sub", "iat", "scope", "typ")
        except NotSigned:
            raise Unauthorized("The token is not one of this server; log in to get one.") from None
        with self._system.store.snapshot() as snapshot:
            return authority.resolve(snapshot, claims, frozenset(claims["scope"]))


def bearer(header: bytes | None) -> str:
    """Return the token of an `Authorization` header. Raises `Unauthorized` if there is none."""
    if header is None:
        raise Unauthorized("The request has no token; send it as `Authorization: Bearer <token>`.")
    scheme, _, token = header.decode("latin1").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthorized("The Authorization header is not `Bearer <token>`.")
    return token.strip()


def check_scope(route: Route, principal: Principal) -> None:
    """Raise `Forbidden` if the token has none of the scopes that the operation accepts."""
    if principal.scopes.isdisjoint(route.scopes):
        raise no_scope(route.operation, route.scopes)
    if route.area in USER_AREAS and principal.kind != "user":
        raise Forbidden(f"{route.operation} is for users; the token of a {principal.kind} does not reach it.")
    if principal.kind == "device" and route.device == "no":
        raise Forbidden(f"{route.operation} is not open to devices.")
