"""Tokens: their claims, how long they are cached, and which scopes include which."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.actors.house import START_MS, House, ManualClock, running_house
from trunkline.actors import server_users
from trunkline.actors.access.authority import Principal
from trunkline.actors.core.records.messages import CreateRecord, Creator, PatchRecord
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Forbidden, Invalid, Unauthorized
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.terms import Tag, TagFilter
from trunkline.actors.fleet.devices.record.messages import DevicePatch, PatchDevice
from trunkline.actors.people.accounts.messages import GetMe
from trunkline.actors.platform.applications.keys import KeyPatch, KeyPost
from trunkline.http.calls.auth import (
    SCOPE_FAMILIES,
    SCOPES_CHARS_MAX,
    TOKEN_CHARS_MAX,
    Tokens,
    bearer,
    check_scope,
)
from trunkline.http.calls.route import Route
from trunkline.http.routes import TABLE
from trunkline.limits.table import Limits

SECRET = b"a secret of at least thirty-two bytes"
ROWS = [route for route in TABLE.routes if route.access != "none"]
SCOPES = sorted(
    SCOPE_FAMILIES
    | {route.scope for route in ROWS}
    | {f"{route.scope.partition('.')[0]}.*" for route in ROWS}
)
BY = Creator("0" * 24, "user", "ada")


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with running_house(tmp_path / "data") as running:
        yield running


def tokens_of(house: House) -> Tokens:
    return Tokens(house.system, SECRET, TABLE.routes)


async def user_of(house: House) -> dict[str, Any]:
    """The claims of a token of a new user."""
    id = await server_users.add_user(house.system, "ada@example.com", "Correct-horse-7")
    return {"typ": "user", "sub": id}


async def key_of(house: House, body: KeyPost) -> bytes:
    message = CreateRecord(resource="applicationKey", body=body, by=BY)
    id: bytes = (await house.system.ask(Ref("application", ROOT, house.application), message)).value.id
    return id


def device_claims(house: House, device: bytes, key: bytes) -> dict[str, Any]:
    return {"typ": "device", "sub": device.hex(), "app": house.application.hex(), "key": key.hex()}


def caller(tokens: Tokens, token: str) -> Principal:
    return tokens.authenticate(b"Bearer " + token.encode())


def issued(tokens: Tokens, claims: dict[str, Any], clock: ManualClock, ttl_s: float | None = None) -> str:
    return tokens.issue(claims, {"all.User"}, clock.wall_ms(), ttl_s)


# Claims and expiry.


async def test_a_token_says_who_bears_it(house: House) -> None:
    tokens, claims = tokens_of(house), await user_of(house)
    principal = caller(tokens, issued(tokens, claims, house.clock, 60))
    assert principal.kind == "user"
    assert principal.scopes == {"all.User"}
    assert principal.user_id == bytes.fromhex(claims["sub"])
    assert principal.name == "ada@example.com"
    assert principal.expires_ms == house.clock.wall_ms() + 60_000
    assert principal.ttl_s == 60


@pytest.mark.parametrize("wall_ms", [1_714_564_800_000, 1_714_564_800_001, 1_714_564_800_999])
@pytest.mark.parametrize("ttl_s", [1, 60, 86_400, 3600.123])
async def test_a_token_holds_to_the_millisecond(house: House, wall_ms: int, ttl_s: float) -> None:
    tokens, claims = tokens_of(house), await user_of(house)
    house.clock.set_wall(wall_ms)
    token = issued(tokens, claims, house.clock, ttl_s)
    for remembered in (True, False):
        if not remembered:
            house.system.revocations.revoke(bytes.fromhex(claims["sub"]))
        house.clock.set_wall(wall_ms + round(ttl_s * 1000) - 1)
        assert caller(tokens, token).ttl_s == ttl_s
        house.clock.set_wall(wall_ms + round(ttl_s * 1000))
        with pytest.raises(Unauthorized, match="expired"):
            caller(tokens, token)


async def test_a_verified_token_is_remembered_until_what_it_depends_on_changes(house: House) -> None:
    tokens, claims = tokens_of(house), await user_of(house)
    token = issued(tokens, claims, house.clock)
    first = caller(tokens, token)
    assert caller(tokens, token) is first
    assert tokens.verified == 1
    house.system.revocations.revoke(bytes.fromhex(claims["sub"]))
    assert caller(tokens, token) is not first
    assert tokens.verified == 2


async def test_the_memory_of_tokens_is_bounded(tmp_path: Path) -> None:
    limits = Limits.off().override({"token_cache_length_max": 2})
    async with running_house(tmp_path / "data", limits=limits) as house:
        tokens, claims = tokens_of(house), await user_of(house)
        first, second, third = (issued(tokens, claims | {"n": n}, house.clock) for n in range(3))
        for token in (first, second, third):
            caller(tokens, token)
        assert tokens.verified == 3
        caller(tokens, second)
        caller(tokens, third)
        assert tokens.verified == 3
        caller(tokens, first)
        assert tokens.verified == 4
        assert len(tokens._cache) == 2


async def test_a_key_that_filters_by_tags_is_judged_anew(house: House) -> None:
    tokens = tokens_of(house)
    device = await house.device(tags=[{"key": "floor", "value": "1"}])
    key = await key_of(house, KeyPost(device_tags=[TagFilter(key="floor")]))
    token = issued(tokens, device_claims(house, device, key), house.clock)
    assert caller(tokens, token).device_id == device
    await house.ask(device, PatchDevice(body=DevicePatch(tags=[])))
    with pytest.raises(Unauthorized):
        caller(tokens, token)
    await house.ask(device, PatchDevice(body=DevicePatch(tags=[Tag(key="floor", value="2")])))
    assert caller(tokens, token).device_id == device


async def test_a_key_that_is_switched_off_ends_its_tokens(house: House) -> None:
    tokens = tokens_of(house)
    device = await house.device()
    key = await key_of(house, KeyPost())
    token = issued(tokens, device_claims(house, device, key), house.clock)
    assert caller(tokens, token).kind == "device"
    change = PatchRecord(resource="applicationKey", record=key, body=KeyPatch(status="inactive"), by=BY)
    await house.system.ask(Ref("application", ROOT, house.application), change)
    with pytest.raises(Unauthorized):
        caller(tokens, token)


async def test_what_was_signed_by_another_or_not_at_all_is_none_of_ours(house: House) -> None:
    tokens, claims = tokens_of(house), await user_of(house)
    whole = {**claims, "scope": ["all.User"], "iat": house.clock.wall_ms() / 1000}
    assert caller(tokens, jwt.encode(whole, SECRET, algorithm="HS256")).kind == "user"
    for token in (
        jwt.encode(whole, SECRET + b"x", algorithm="HS256"),
        jwt.encode(whole, "", algorithm="none"),
        jwt.encode(whole, SECRET * 2, algorithm="HS512"),
        jwt.encode({**whole, "sub": 5}, SECRET, algorithm="HS256"),
        *(
            jwt.encode({k: v for k, v in whole.items() if k != name}, SECRET, algorithm="HS256")
            for name in whole
        ),
        "x" * (TOKEN_CHARS_MAX + 1),
    ):
        with pytest.raises(Unauthorized, match="not one of this server"):
            caller(tokens, token)


@pytest.mark.parametrize(
    ("header", "token"),
    [
        (b"Bearer x", "x"),
        (b"bearer  x ", "x"),
        (None, None),
        (b"Bearer", None),
        (b"x", None),
        (b"Basic x", None),
    ],
)
def test_the_header_is_read_or_refused(header: bytes | None, token: str | None) -> None:
    if token is not None:
        assert bearer(header) == token
    else:
        with pytest.raises(Unauthorized):
            bearer(header)


# Scopes.


def operation(name: str) -> Route:
    return next(route for route in ROWS if route.operation == name)


def bearing(kind: str, *scopes: str) -> Principal:
    return Principal(kind=kind, scopes=frozenset(scopes), expires_ms=None)


def test_a_wide_scope_in_the_wrong_hands_opens_nothing() -> None:
    """Such a token cannot be created; if one were, these routes would still refuse it."""
    for kind in ("application", "device"):
        for name in ("me.get", "me.patch", "userApiTokens.post", "applications.post"):
            with pytest.raises(Forbidden, match="is for users"):
                check_scope(operation(name), bearing(kind, "all.User", name))
    for name in ("device.patch", "applicationKeys.post", "application.delete"):
        check_scope(operation(name), bearing("application", "all.Application"))
        with pytest.raises(Forbidden, match="not open to devices"):
            check_scope(operation(name), bearing("device", "all.Application", name))


def opened(scopes: frozenset[str] | set[str]) -> set[tuple[str, str]]:
    """The operations that accept a user's token with these scopes."""
    return {(route.method, route.path) for route in ROWS if not route.scopes.isdisjoint(scopes)}


@given(own=st.frozensets(st.sampled_from(SCOPES), min_size=1, max_size=6), wanted=st.sampled_from(SCOPES))
def test_what_is_handed_on_opens_nothing_new(own: frozenset[str], wanted: str) -> None:
    covered = Tokens(_NO_SYSTEM, SECRET, TABLE.routes).covers(own, wanted)
    if covered:
        assert opened({wanted}) <= opened(own)
    elif not wanted.endswith(".*") and wanted not in SCOPE_FAMILIES:
        # A single operation is refused only if the bearer cannot call it.
        assert not opened({wanted}) <= opened(own)


_NO_SYSTEM: Any = None
"""Scopes are compared without looking at any record."""


@pytest.mark.parametrize("wanted", SCOPES)
def test_who_may_everything_may_hand_on_everything(wanted: str) -> None:
    assert Tokens(_NO_SYSTEM, SECRET, TABLE.routes).covers(frozenset({"all.User"}), wanted)


@pytest.mark.parametrize("kind", ["user", "application", "device"])
@pytest.mark.parametrize(
    "wanted", [["all.Everything"], [""], ["device"], ["device."], [".*"], ["*"], ["all.*"], ["auth.*"], []]
)
def test_what_is_no_scope_is_refused_for_everybody(kind: str, wanted: list[str]) -> None:
    with pytest.raises(Invalid, match="scope"):
        Tokens(_NO_SYSTEM, SECRET, TABLE.routes).checked_scopes(wanted, kind=kind, field="scope")


def test_the_longest_list_of_scopes_makes_a_token_that_is_read() -> None:
    operations = [f"device.operationNumber{number:03}" for number in range(400)]
    rows = [
        Route(method="GET", path=f"/{name}", operation=name, summary="", message=GetMe) for name in operations
    ]
    tokens = Tokens(_NO_SYSTEM, SECRET, tuple(rows))
    most = SCOPES_CHARS_MAX // (len(operations[0]) + 3)
    scopes = tokens.checked_scopes(operations[:most], kind="user", field="scope")
    claims = {
        "typ": "device",
        "sub": "0" * 24,
        "app": "0" * 24,
        "key": "0" * 24,
        "gen": 10**6,
        "jti": "0" * 24,
    }
    assert len(tokens.issue(claims | {"auth": START_MS}, scopes, START_MS, 0.001)) <= TOKEN_CHARS_MAX
    with pytest.raises(Invalid, match="too many for one token"):
        tokens.checked_scopes(operations[: most + 1], kind="user", field="scope")


def test_a_device_gets_no_scope_that_its_rows_refuse() -> None:
    tokens = Tokens(_NO_SYSTEM, SECRET, TABLE.routes)
    for scope in SCOPES:
        try:
            given = tokens.checked_scopes([scope], kind="device", field="scope")
        except Invalid:
            continue
        assert all(route.device != "no" for route in ROWS if not route.scopes.isdisjoint(given)) or (
            scope in {"all.Device", "all.Device.read"}
        )


def test_an_application_gets_no_scope_of_users() -> None:
    tokens = Tokens(_NO_SYSTEM, SECRET, TABLE.routes)
    for scope in SCOPES:
        try:
            given = tokens.checked_scopes([scope], kind="application", field="scope")
        except Invalid:
            continue
        assert all(route.area == "application" for route in ROWS if not route.scopes.isdisjoint(given))
