"""Pages of other origins: the headers of responses, for the API and for experiences alike."""

from __future__ import annotations

from trunkline.http.wire.cors import ANY_ORIGIN, METHODS, AllowedOrigins, preflight_headers

PAGE = b"https://a.example"


def test_a_response_names_the_origin_only_if_it_is_allowed() -> None:
    allowed = AllowedOrigins([PAGE.decode()], b"ETag")
    assert dict(allowed.headers_for(PAGE)) == {
        b"access-control-allow-origin": PAGE,
        b"access-control-expose-headers": b"ETag",
        b"vary": b"Origin",
    }
    # Also what is for nobody else depends on the origin, so a cache must know that.
    for other in (None, b"https://b.example", b"https://a.example.org", b"*"):
        assert allowed.headers_for(other) == [(b"vary", b"Origin")]


def test_all_origins_get_the_same_response() -> None:
    allowed = AllowedOrigins([ANY_ORIGIN, PAGE.decode()], b"ETag")
    assert allowed.headers_for(PAGE) == allowed.headers_for(None)
    assert dict(allowed.headers_for(None)) == {
        b"access-control-allow-origin": b"*",
        b"access-control-expose-headers": b"ETag",
    }


def test_cookies_are_allowed_to_named_origins_only() -> None:
    allowed = AllowedOrigins([PAGE.decode(), "https://ä.example"], b"*", credentials=True)
    assert (b"access-control-allow-credentials", b"true") in allowed.headers_for(PAGE)
    assert allowed.headers_for(b"https://b.example") == [(b"vary", b"Origin")]


def test_a_preflight_says_what_may_be_sent() -> None:
    plain = dict(preflight_headers(METHODS, None))
    assert plain == {b"access-control-allow-methods": METHODS, b"access-control-max-age": b"7200"}
    asked = dict(preflight_headers(METHODS, b"x-a, x-b"))
    assert asked == {**plain, b"access-control-allow-headers": b"x-a, x-b"}
