"""A plain resource: what follows from its structs, and what is refused when it is described."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import pytest
from msgspec import UNSET, UnsetType

from trunkline.actors.catalogue import COUNTED, KINDS, RESOURCES
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc, Kind
from trunkline.actors.core.records.page import Page
from trunkline.actors.core.records.resource import Resource
from trunkline.actors.core.records.revision import Found
from trunkline.actors.core.values.structs import Body
from trunkline.actors.core.values.terms import IsoTime, Name, RecordView
from trunkline.actors.core.values.timestamps import parse_iso
from trunkline.actors.people.accounts.tokens import APPLICATION_TOKENS
from trunkline.actors.platform.applications.keys import KEYS
from trunkline.store.codec import encode
from trunkline.store.keyring import Keyring, sealed_values


class CardPost(Body, frozen=True):
    name: Name
    suit: Literal["hearts", "spades"] = "hearts"
    played_at: str | UnsetType | None = UNSET


class CardPatch(Body, frozen=True):
    name: Name | UnsetType = UNSET
    played_at: str | UnsetType | None = UNSET


class CardView(RecordView, frozen=True, kw_only=True):
    card_id: str
    name: str
    suit: str
    played_at: IsoTime | None = None


CARDS = Resource(
    name="card",
    kind=Kind(name="card", noun="card", counted_as=None, audited_as=None),
    post=CardPost,
    patch=CardPatch,
    page=Page,
    view=CardView,
    hidden=frozenset({"sleeve"}),
)
TIME = "2026-05-01T12:00:00.000Z"


def test_times_are_stored_in_milliseconds_and_shown_as_text() -> None:
    stored = CARDS.stored(CardPost(name="a", played_at=TIME))
    assert stored["playedAt"] == parse_iso(TIME)
    found = Found(b"c" * 12, {"creationDate": 0, "lastUpdated": 0, "sleeve": 1, **stored}, b"raw")
    shown = CARDS.show({}, found, None)
    assert shown["playedAt"] == TIME
    assert "sleeve" not in shown


def test_a_default_of_the_body_is_the_default_of_the_record() -> None:
    assert CARDS.defaults == {"suit": "hearts"}


def test_a_null_takes_a_field_away() -> None:
    named = CARDS.stored(CardPatch(played_at=None))
    assert named == {"playedAt": None}
    assert records.apply_patch({"name": "a", "playedAt": 5, "note": None}, named) == {
        "name": "a",
        "note": None,
    }


def test_what_is_hidden_cannot_be_shown() -> None:
    with pytest.raises(TypeError, match="CardView shows suit, which card hides"):
        replace(CARDS, hidden=frozenset({"suit"}))


SEALED = replace(CARDS, sealed=frozenset({"pin", "config.token", "config.headers.value"}))


def test_secrets_are_encrypted_changed_kept_and_removed_by_their_paths() -> None:
    keyring, id = Keyring.new(), b"c" * 12
    config = {"host": "a", "token": "t", "headers": [{"key": "k", "value": "v"}]}
    doc: Doc = {
        "creationDate": 0,
        "lastUpdated": 0,
        "name": "a",
        "suit": "hearts",
        "pin": "1",
        "config": config,
    }
    SEALED.seal(keyring, id, doc)
    assert [each.field for each in sealed_values(doc)] == ["pin", "config.token", "config.headers.0.value"]
    changed = SEALED.changed(doc, {"name": "b", "config": {"host": "b"}})
    assert (changed["pin"], changed["config"]["token"]) == (doc["pin"], doc["config"]["token"])
    assert (changed["config"]["host"], doc["config"]["host"]) == ("b", "a")
    changed = SEALED.changed(changed, {"pin": None, "config": {"token": "new", "headers": None}})
    SEALED.seal(keyring, id, changed)
    assert "pin" not in changed
    assert "headers" not in changed["config"]
    opened = keyring.unseal(changed["config"]["token"], kind="card", id=id, field="config.token")
    assert opened == "new"
    assert SEALED.changed(changed, {"config": None}).keys() == changed.keys() - {"config"}


def test_secrets_are_not_shown() -> None:
    class OpenView(CardView, frozen=True, kw_only=True):
        config: dict[str, Any] | None = None

    resource = replace(SEALED, view=OpenView)
    doc = {
        "creationDate": 0,
        "lastUpdated": 0,
        "name": "a",
        "pin": "1",
        "config": {"host": "a", "token": "t"},
    }
    resource.seal(Keyring.new(), b"c" * 12, doc)
    assert resource.show({}, Found(b"c" * 12, doc, encode(doc)), None)["config"] == {"host": "a"}
    with pytest.raises(TypeError, match="CardView shows name, which card hides"):
        replace(CARDS, sealed=frozenset({"name"}))


def test_a_changed_record_is_later_than_before_also_where_the_clock_went_back() -> None:
    assert records.next_update_ms(1000, {"lastUpdated": 5000}) == 5001
    assert records.next_update_ms(9000, {"lastUpdated": 5000}) == 9000


def test_every_resource_has_its_kind_in_the_catalogue_and_a_name_of_its_own() -> None:
    for name, resource in RESOURCES.items():
        assert resource.name == name
        assert KINDS[resource.kind.name] is resource.kind
    assert len({resource.kind.counted_as for resource in RESOURCES.values()}) == len(
        {resource.kind.name for resource in RESOURCES.values()}
    )
    assert all(kind.counted_as == field for field, kind in COUNTED.items())


def test_no_stored_field_is_shown_by_chance() -> None:
    """Names of makers and hashes are stored with every record; a view shows them only where it says so."""
    doc = {"creationDate": 0, "lastUpdated": 0, "createdById": "a", "createdByName": "b", "secretHash": b"c"}
    for resource in RESOURCES.values():
        if resource.derive is None:
            found = Found(b"c" * 12, doc, encode(doc))
            shown = resource.show({"application": b"a" * 12}, found, resource.choice and resource.choice())
            assert not {"createdByName", "secretHash", "passwordHash"} & shown.keys()


def test_two_resources_may_share_a_kind() -> None:
    assert KEYS.kind is not APPLICATION_TOKENS.kind
    assert [each.name for each in RESOURCES.values() if each.kind is APPLICATION_TOKENS.kind] == [
        "applicationApiToken",
        "userApiToken",
    ]
