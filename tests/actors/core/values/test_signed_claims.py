"""Claims are read only by who knows the key, and only for the purpose for which they were signed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.rules.import_graph import ROOMS
from trunkline.actors.core.values.signed_claims import NotSigned, SignedClaims, key_for

SECRET = b"s" * 32
LINKS = SignedClaims(key_for(SECRET, b"links"), "link")


def test_claims_are_read_as_they_were_signed_however_old_they_are() -> None:
    claims = {"sub": "ab", "exp": 1, "iat": 2**40}
    assert LINKS.read(LINKS.sign(claims), "sub", "exp") == {"aud": "link", **claims}
    plain = SignedClaims(key_for(SECRET, b"plain"))
    assert plain.read(plain.sign(claims), "sub") == claims


@pytest.mark.parametrize(
    "other",
    [
        SignedClaims(key_for(SECRET, b"forms"), "link"),
        SignedClaims(key_for(b"t" * 32, b"links"), "link"),
        SignedClaims(key_for(SECRET, b"links"), "form"),
        SignedClaims(key_for(SECRET, b"links")),
    ],
    ids=["purpose", "secret", "audience", "no audience"],
)
def test_what_was_signed_for_something_else_is_refused(other: SignedClaims) -> None:
    with pytest.raises(NotSigned):
        LINKS.read(other.sign({"sub": "ab"}), "sub")


@pytest.mark.parametrize("token", ["", "a.b.c", "é.é.é", LINKS.sign({"sub": "ab"})[:-2]])
def test_what_is_no_token_is_refused(token: str) -> None:
    with pytest.raises(NotSigned):
        LINKS.read(token)


def test_a_token_without_a_required_claim_is_refused() -> None:
    with pytest.raises(NotSigned):
        LINKS.read(LINKS.sign({"sub": "ab"}), "sub", "exp")


def test_only_one_module_knows_the_form_of_our_tokens(checkout: Path) -> None:
    """Nodes of workflows sign and read the JSON web tokens of others."""
    users = {
        file.relative_to(checkout).as_posix()
        for room in ROOMS
        for file in (checkout / room).rglob("*.py")
        if re.search(r"^\s*(import jwt|from jwt)\b", file.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert users == {"actors/core/values/signed_claims.py", "actors/engine/nodes/jwt_nodes.py"}
