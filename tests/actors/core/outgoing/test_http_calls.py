"""Which addresses this server may be made to call."""

from __future__ import annotations

import ipaddress

import pytest

from trunkline.actors.core.outgoing.http_calls import check_url, is_given_here, is_public
from trunkline.actors.core.values.errors import Invalid

INSIDE = [
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.168.0.1",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:10.0.0.1",
    "64:ff9b::a00:1",
    "64:ff9b:1::a00:1",
    "2002:a00:1::",
    "2002:7f00:1::1",
    "2001:0:4136:e378:8000:63bf:f5ff:fffe",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fec0::1",
    "ff02::1",
]
OUTSIDE = ["1.1.1.1", "8.8.8.8", "93.184.216.34", "2606:4700:4700::1111", "2a00:1450:4001:80b::200e"]


@pytest.mark.parametrize("address", INSIDE)
def test_what_is_inside_is_not_public(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", OUTSIDE)
def test_what_is_outside_is_public(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("url", ["https://example.com/x?y=z", "http://1.1.1.1:8080/", "HTTPS://EXAMPLE.com"])
def test_what_may_be_called(url: str) -> None:
    check_url(url, private=False)


@pytest.mark.parametrize(
    "url",
    [
        "https://",
        "http:///x",
        "https://example.com:99999/",
        "gopher://example.com/",
        "https://u:p@example.com",
        "http://xn--/",
        "https://xn--zzzz--.com/",
    ],
)
def test_what_is_no_address_is_refused_whatever_the_operator_allows(url: str) -> None:
    for private in (True, False):
        with pytest.raises(Invalid, match="callbackUrl"):
            check_url(url, private=private)


BASE = "http://127.0.0.1:8080"


@pytest.mark.parametrize(
    "url", [f"{BASE}/files/{'a' * 24}/logo.png", "HTTP://127.0.0.1:8080/webhooks/token?a=..%2F"]
)
def test_public_files_and_webhooks_of_this_server_are_given_to_everybody(url: str) -> None:
    assert is_given_here(url, BASE)
    assert not is_given_here(url, "")
    assert not is_given_here(url, "https://farm.example")


@pytest.mark.parametrize(
    "url",
    [
        f"{BASE}/applications",
        f"{BASE}/files",
        f"{BASE}/files/../metrics",
        f"{BASE}/files/%2e%2e/metrics",
        f"{BASE}/files/a/%2E./%2e%2e/metrics",
        "http://127.0.0.1:8081/files/a",
        "https://127.0.0.1:8080/files/a",
        "http://127.0.0.2:8080/files/a",
        "http://u:p@127.0.0.1:8080/files/a",
        "http://[/files/",
        "http://xn--/files/",
    ],
)
def test_nothing_else_of_this_server_is(url: str) -> None:
    assert not is_given_here(url, BASE)
