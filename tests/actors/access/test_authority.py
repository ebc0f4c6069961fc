"""What an access key allows: devices by id and by tag, and network addresses."""

from __future__ import annotations

import ipaddress
from typing import Any

import argon2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.people.accounts import passwords
from trunkline.actors.people.accounts.passwords import check_new_password
from trunkline.actors.people.accounts.reach import (
    TOPIC_FILTER,
    filters_by_tags,
    has_tag,
    key_admits,
    key_admits_address,
)

FLOOR_1 = {"key": "floor", "value": "1"}
FLOOR_2 = {"key": "floor", "value": "2"}
ROOM_1 = {"key": "room", "value": "1"}


def key(filter_type: str, *ids: str, tags: list[dict[str, str]] | None = None) -> dict[str, Any]:
    return {"filterType": filter_type, "deviceIds": list(ids), "deviceTags": tags or []}


@pytest.mark.parametrize(
    ("tags", "filters", "found"),
    [
        ([FLOOR_1], [FLOOR_1], True),
        ([FLOOR_1], [{"key": "floor"}], True),
        ([FLOOR_1], [{"value": "1"}], True),
        ([FLOOR_1], [FLOOR_2], False),
        ([FLOOR_1], [FLOOR_2, FLOOR_1], True),
        # Key and value must stand in the same tag.
        ([FLOOR_2, ROOM_1], [FLOOR_1], False),
        ([], [{"key": "floor"}], False),
        ([FLOOR_1], [], False),
        # A filter without a side names nothing.
        ([FLOOR_1], [{}], False),
    ],
)
def test_a_tag_matches_by_key_by_value_or_by_both(
    tags: list[dict[str, str]], filters: list[dict[str, str]], found: bool
) -> None:
    assert has_tag(tags, filters) is found


@pytest.mark.parametrize("named", ["nothing", "id", "tag"])
@pytest.mark.parametrize("filter_type", ["all", "none", "whitelist", "blacklist"])
def test_an_older_key_admits_by_its_filter(filter_type: str, named: str) -> None:
    device = {"id": "a", "tags": [FLOOR_1]}
    chosen = {
        "nothing": key(filter_type, "b", tags=[FLOOR_2]),
        "id": key(filter_type, "a"),
        "tag": key(filter_type, tags=[FLOOR_1]),
    }[named]
    expected = {
        "all": True,
        "none": False,
        "whitelist": named != "nothing",
        "blacklist": named == "nothing",
    }[filter_type]
    assert key_admits(chosen, device) is expected


@pytest.mark.parametrize("filter_type", ["all", "none", "whitelist", "blacklist"])
def test_a_key_admits_the_devices_that_it_names_whatever_its_topics(filter_type: str) -> None:
    device = {"id": "a", "tags": [FLOOR_1]}
    for chosen, admitted in (
        (key(filter_type), True),
        (key(filter_type, "b", tags=[FLOOR_2]), False),
        (key(filter_type, "a"), True),
        (key(filter_type, tags=[FLOOR_1]), True),
    ):
        assert key_admits(chosen | {TOPIC_FILTER: True}, device) is admitted


def test_only_a_filter_that_looks_at_tags_depends_on_them() -> None:
    assert filters_by_tags(key("whitelist", tags=[FLOOR_1]))
    assert filters_by_tags(key("blacklist", "a", tags=[FLOOR_1]))
    assert not filters_by_tags(key("all", tags=[FLOOR_1]))
    assert not filters_by_tags(key("whitelist", "a"))
    assert not filters_by_tags({})


@pytest.mark.parametrize(
    ("entry", "address", "listed"),
    [
        ("192.0.2.7", "192.0.2.7", True),
        ("192.0.2.7", "192.0.2.8", False),
        ("192.0.2.7/24", "192.0.2.8", True),
        ("192.0.2.0/24", "::ffff:192.0.2.7", True),
        ("192.0.2.0/24", "::ffff:198.51.100.1", False),
        ("::ffff:0:0/96", "192.0.2.7", False),
        ("2001:db8::/32", "2001:db8:5::1", True),
        ("2001:db8::/32", "2001:db9::1", False),
        ("0.0.0.0/0", "2001:db8::1", False),
        ("::/0", "192.0.2.7", False),
    ],
)
def test_an_address_is_listed_or_not(entry: str, address: str, listed: bool) -> None:
    addresses = {"addresses": ["203.0.113.9", entry]}
    assert key_admits_address({"addressFilterType": "whitelist", **addresses}, address) is listed
    assert key_admits_address({"addressFilterType": "blacklist", **addresses}, address) is not listed
    assert key_admits_address({"addressFilterType": "all", **addresses}, address)


@pytest.mark.parametrize("address", ["", "unix", "192.0.2", "192.0.2.7:80"])
def test_what_is_no_address_passes_no_filter(address: str) -> None:
    for chosen in ("whitelist", "blacklist"):
        assert not key_admits_address({"addressFilterType": chosen, "addresses": ["0.0.0.0/0"]}, address)
    assert key_admits_address({}, address)


@given(
    network=st.ip_addresses(v=4), bits=st.integers(0, 32), caller=st.ip_addresses(v=4), mapped=st.booleans()
)
def test_a_network_holds_the_addresses_that_share_its_bits(
    network: ipaddress.IPv4Address, bits: int, caller: ipaddress.IPv4Address, mapped: bool
) -> None:
    shift = 32 - bits
    expected = int(network) >> shift == int(caller) >> shift
    filters = {"addressFilterType": "whitelist", "addresses": [f"{network}/{bits}"]}
    assert key_admits_address(filters, f"::ffff:{caller}" if mapped else str(caller)) is expected


@pytest.mark.usefixtures("full_hashes")
def test_an_unknown_address_costs_what_a_wrong_password_costs() -> None:
    real = passwords._hasher.hash("Correct-horse-7")
    assert argon2.extract_parameters(passwords._impossible_hash()) == argon2.extract_parameters(real)
    assert [len(part) for part in passwords._impossible_hash().split("$")] == [
        len(part) for part in real.split("$")
    ]
    with pytest.raises(argon2.exceptions.VerifyMismatchError):
        passwords._hasher.verify(passwords._impossible_hash(), "Correct-horse-7")


@pytest.mark.parametrize(
    ("password", "strong"),
    [
        ("Correct-horse-7", True),
        ("Aa1-" * 3, True),
        ("Aa1-" * 512, True),
        ("Aa1-" * 512 + "x", False),
        ("Aa1-aaaaaaa", False),
        ("correct-horse-7", False),
        ("CORRECT-HORSE-7", False),
        ("Correct-horse-x", False),
        ("Correcthorse777", False),
        ("", False),
    ],
)
def test_a_password_that_is_set_is_a_strong_one(password: str, strong: bool) -> None:
    if strong:
        check_new_password(password)
    else:
        with pytest.raises(Invalid, match=r"password: needs 12 characters"):
            check_new_password(password)
