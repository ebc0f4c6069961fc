"""Error responses name the field, what is wrong with it, and what would be right."""

from __future__ import annotations

import msgspec
import pytest

from trunkline.actors.core.values import errors
from trunkline.http.calls.errors import STATUS, error_response, protocol_error, rate_limit
from trunkline.limits.table import Rate
from trunkline.limits.window import SlidingWindow


def test_every_error_has_a_status_and_the_one_shape() -> None:
    for error in errors.ERRORS:
        assert error.type in STATUS
    status, headers, body = error_response(errors.NotFound("There is no device."))
    assert (status, msgspec.json.decode(body)) == (
        404,
        {"type": "NotFound", "message": "There is no device."},
    )
    assert (b"content-type", b"application/json") in headers


def test_a_throttled_call_hears_when_to_come_back() -> None:
    window = SlidingWindow(Rate(2, 15))
    window.allow(100.0)
    window.allow(101.5)
    verdict = window.allow(102.25)
    refused = errors.TooManyRequests(
        "no", bucket="send_state", verdict=verdict, retry_after_s=verdict.reset_s
    )
    status, headers, _ = error_response(refused)
    assert status == 429
    assert dict(headers) == {
        b"content-type": b"application/json",
        b"retry-after": b"13",
        b"ratelimit-policy": b'"send_state";q=2;w=15',
        b"ratelimit": b'"send_state";r=0;t=13',
    }


def test_the_headers_of_a_call_that_passed() -> None:
    verdict = SlidingWindow(Rate(30, 15)).allow(5.0)
    assert rate_limit("send_state", verdict) == [
        (b"ratelimit-policy", b'"send_state";q=30;w=15'),
        (b"ratelimit", b'"send_state";r=29;t=15'),
    ]


@pytest.mark.parametrize(
    ("window_s", "shown"), [(0.5, b"1"), (1.5, b"2"), (15.0, b"15"), (86_400.0, b"86400")]
)
def test_the_window_in_the_headers_is_an_integer(window_s: float, shown: bytes) -> None:
    (_, policy), _ = rate_limit("send_state", SlidingWindow(Rate(30, window_s)).allow(5.0))
    assert policy == b'"send_state";q=30;w=' + shown


@pytest.mark.parametrize("status", [400, 405, 408, 417, 429, 431, 500, 501, 503, 505])
def test_what_the_wire_refuses_has_the_same_shape(status: int) -> None:
    _, body = protocol_error(status, "No.")
    assert set(msgspec.json.decode(body)) == {"type", "message"}
