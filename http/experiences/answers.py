"""Answers to requests of an experience: the headers that a reply gets, its cookies, and cross-origin calls.

What a workflow or a version says of a header goes before what is added here, but it cannot frame the message itself.
A site on a path of this server shares its origin with the API and with other sites. So a browser is told to treat its
pages as of no origin (`Content-Security-Policy: sandbox`), its cookies are for its path only, and it cannot say
anything about the whole host.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple
from urllib.parse import quote

import msgspec

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.presentation.experience.replies import (
    FRAMING_HEADERS,
    HOST_HEADERS,
    Cookie,
    redirect_status,
)
from trunkline.actors.presentation.experience.terms import HEADER_NAME
from trunkline.http.calls.request import Headers
from trunkline.http.experiences.topic_answer import TopicAnswer
from trunkline.http.wire.cors import ANY_ORIGIN, METHODS, AllowedOrigins, preflight_headers
from trunkline.http.wire.exchange import BODILESS

_DEFAULTS: Final = (
    ("cache-control", "no-cache, no-store, must-revalidate"),
    ("pragma", "no-cache"),
    ("x-content-type-options", "nosniff"),
)
_SANDBOX: Final = (
    "content-security-policy",
    (
        "sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts "
        "allow-top-navigation-by-user-activation"
    ),
)
_TRANSPORT: Final = ("strict-transport-security", "max-age=31536000")

_JSON: Final = ("content-type", "application/json")
_IN_VALUE: Final = "!#$&'()*+-./:<=>?@[]^_`{|}~"
_IN_URL: Final = "!#$%&'()*+,/:;=?@[]~"

NO_REPLY: Final = (
    "No workflow is left that could reply: each that was triggered has failed, or had nothing to do."
)
"""The sentence of a 500."""

_ALL_HEADERS: Final = b"*"
_NO_AGE: Final = "Thu, 01 Jan 1970 00:00:00 GMT"


class Surroundings(NamedTuple):
    """What an answer depends on beside its reply: the request, and the settings of the version.

    `prefix` is the path under which the site lies, empty if it has the host for itself.
    """

    settings: Doc
    prefix: str
    secure: bool
    origin: str | None
    requested_headers: str | None


class Answer(NamedTuple):
    """An answer as it is sent. What a `stream` sends follows the body."""

    status: int
    headers: Headers
    body: bytes
    stream: TopicAnswer | None = None


def answer_of(
    around: Surroundings,
    status: int,
    headers: Iterable[tuple[str, str]] = (),
    cookies: Iterable[Cookie] = (),
    body: bytes = b"",
) -> Answer:
    """An answer with all its headers."""
    taboo = FRAMING_HEADERS | HOST_HEADERS if around.prefix else FRAMING_HEADERS
    given = [(name.lower(), value) for name, value in headers if HEADER_NAME.fullmatch(name)]
    given = [(name, value) for name, value in given if name not in taboo]
    names = {name for name, _ in given}
    own = [(name.lower(), value) for name, value in around.settings.get("responseHeaders", {}).items()]
    for each in (own, _DEFAULTS, cross_origin(around)):
        added = [(name, value) for name, value in each if name not in names and name not in taboo]
        given += added
        names |= {name for name, _ in added}
    if around.prefix:
        given.append(_SANDBOX)
    elif around.secure and _TRANSPORT[0] not in names:
        given.append(_TRANSPORT)
    given += [("set-cookie", _cookie(each, around)) for each in cookies]
    if status in BODILESS:
        body = b""
    return Answer(status, [(name.encode("latin1"), _value(value)) for name, value in given], body)


def sentence(around: Surroundings, status: int, text: str) -> Answer:
    """The answer to a request that cannot be served."""
    return answer_of(around, status, [_JSON], body=msgspec.json.encode({"error": text}))


def _value(text: str) -> bytes:
    """The value of a header on one line."""
    line = "".join(" " if sign in "\r\n\0" else sign for sign in text).strip()
    return line.encode("latin1", "replace")


def location_of(around: Surroundings, url: str) -> str:
    """The address of a redirection. On a path, an address that begins with a slash is one of the site."""
    address = quote(url.strip(), safe=_IN_URL)
    # A browser would take a backslash for a slash, and `//` begins the name of a host.
    if around.prefix and address.startswith("/") and not address.startswith("//"):
        return around.prefix + address
    return address


def redirection(
    around: Surroundings,
    status: int,
    url: str,
    headers: Iterable[tuple[str, str]],
    cookies: Iterable[Cookie],
) -> Answer:
    """The answer that leads to another address."""
    others = [(name, value) for name, value in headers if name.lower() != "location"]
    location = ("location", location_of(around, url))
    return answer_of(around, redirect_status(status), [location, *others], cookies)


def _cookie(cookie: Cookie, around: Surroundings) -> str:
    """The text of a `Set-Cookie` header. Scripts of pages never see the cookie that logs a user in."""
    path = cookie.path if cookie.path.startswith("/") else "/"
    path = quote(around.prefix + path, safe="/%:@!$&'()*+=~")
    parts = [f"{quote(cookie.name, safe='')}={quote(cookie.value, safe=_IN_VALUE)}", f"Path={path}"]
    if not cookie.value:
        parts += ["Max-Age=0", f"Expires={_NO_AGE}"]
    elif cookie.max_age_ms is not None:
        # A part of a second is a second: an age of 0 removes a cookie.
        age_s = int(cookie.max_age_ms // 1000)
        parts.append(f"Max-Age={age_s or int(cookie.max_age_ms > 0)}")
    if cookie.name == "authorization":
        parts.append("HttpOnly")
    if around.secure:
        parts.append("Secure")
    if cookie.same_site.lower() in ("lax", "strict", "none"):
        parts.append(f"SameSite={cookie.same_site.capitalize()}")
    return "; ".join(parts)


# Calls of pages of other origins.


def cross_origin(around: Surroundings) -> Iterator[tuple[str, str]]:
    """The headers by which a browser shows an answer to a page of another origin, if the version wants that.

    A version that names origins also lets their pages send cookies; one that names none lets pages of all origins call,
    without cookies.
    """
    if not around.settings.get("endpointDefaultCors"):
        return
    named = around.settings.get("allowedCorsOrigins")
    allowed = AllowedOrigins(named or [ANY_ORIGIN], _ALL_HEADERS, credentials=bool(named))
    origin = None if around.origin is None else around.origin.encode("latin1")
    for name, value in allowed.headers_for(origin):
        yield name.decode(), value.decode("latin1")


def preflight(around: Surroundings) -> Answer:
    """The answer to an `OPTIONS` request that no endpoint serves."""
    requested = around.requested_headers
    headers = preflight_headers(METHODS + b", OPTIONS", requested.encode("latin1") if requested else None)
    return answer_of(around, 204, [(name.decode(), value.decode("latin1")) for name, value in headers])
