"""Published ways of smuggling requests and of abusing parsers, on both engines.

Each case is a stream of bytes and what it means: the requests that an application may see in it. A stream
that could be read in two ways is refused, and nothing behind the doubt is a request. The two engines must
agree; where they do not, `STOCK_DIFFERS` says what the stock parser makes of it, and why.

It is long because it is one table: the cases say nothing one by one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.http.raw_wire import Receive, Scope, Send, Wired, application, reply, serving, whole_body

pytestmark = pytest.mark.usefixtures("silent")

PROBE = b"GET /probe HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
"""Sent behind each case: seen only where the stream is still understood."""

PASSED = "GET /probe"
HELLO = "POST /a hello"
EMPTY = "POST /a"
GET = "GET /a"
CHUNKS = b"5\r\nhello\r\n0\r\n\r\n"


class Case(NamedTuple):
    source: str
    data: bytes
    seen: tuple[str, ...] = ()
    """The requests that are there, with their bodies; none: the stream is refused."""


def post(*fields: bytes, body: bytes = b"hello", version: bytes = b"1.1") -> bytes:
    head = b"POST /a HTTP/%b\r\nHost: x\r\n" % version
    return head + b"".join(field + b"\r\n" for field in fields) + b"\r\n" + body


def chunked(body: bytes) -> bytes:
    return post(b"Transfer-Encoding: chunked", body=body)


def get(*fields: bytes) -> bytes:
    return b"GET /a HTTP/1.1\r\nHost: x\r\n" + b"".join(field + b"\r\n" for field in fields) + b"\r\n"


def line(request_line: bytes) -> bytes:
    return request_line + b"\r\nHost: x\r\n\r\n"


def length(value: bytes, source: str = "RFC 9110, 8.6: digits and nothing else") -> Case:
    return Case(source, post(b"Content-Length:" + value))


def coding(value: bytes, source: str = "RFC 9112, 6.1: what is not understood is 501") -> Case:
    return Case(source, post(b"Transfer-Encoding:" + value, body=CHUNKS))


def size(value: bytes, source: str = "RFC 9112, 7.1: hexadecimal digits and nothing else") -> Case:
    return Case(source, chunked(value + b"\r\nhello\r\n0\r\n\r\n"))


LENGTHS = {
    "a length": Case("RFC 9112, 6.2", post(b"Content-Length: 5"), (HELLO, PASSED)),
    "no space before it": Case("RFC 9112, 5", post(b"Content-Length:5"), (HELLO, PASSED)),
    "blanks around it": Case("RFC 9112, 5", post(b"Content-Length: \t 5 \t"), (HELLO, PASSED)),
    "a zero in front": Case("RFC 9110, 8.6", post(b"Content-Length: 05"), (HELLO, PASSED)),
    "a body for GET": Case("RFC 9110, 9.3.1", get(b"Content-Length: 5") + b"hello", ("GET /a hello", PASSED)),
    "length, then coding": Case(
        "RFC 9112, 6.1; CL.TE", post(b"Content-Length: 5", b"Transfer-Encoding: chunked", body=CHUNKS)
    ),
    "coding, then length": Case(
        "RFC 9112, 6.1; TE.CL", post(b"Transfer-Encoding: chunked", b"Content-Length: 15", body=CHUNKS)
    ),
    "coding and a length of 0": Case(
        "RFC 9112, 6.1; TE.0", post(b"Transfer-Encoding: chunked", b"Content-Length: 0", body=CHUNKS)
    ),
    "two lengths": Case("RFC 9112, 6.3", post(b"Content-Length: 5", b"Content-Length: 0")),
    "the same length twice": Case("RFC 9110, 8.6", post(b"Content-Length: 5", b"Content-Length: 5")),
    "a list of the same length": length(b" 5, 5"),
    "a list of lengths": length(b" 5, 0"),
    "a plus": length(b" +5", "CVE-2022-24761 (waitress)"),
    "a minus": length(b" -5"),
    "hexadecimal": length(b" 0x5"),
    "an underscore": length(b" 0_5", "int() of Python takes it"),
    "an exponent": length(b" 5e0"),
    "a fraction": length(b" 5.0"),
    "two words": length(b" 5 0"),
    "no length": length(b""),
    "a NUL": length(b" 5\x00"),
    "a digit of another script": length(" ٥".encode()),
    "a vertical tab": length(b" \x0b5"),
    "more than 64 bits": length(b" 18446744073709551621"),
    "more than any number": length(b" " + b"9" * 40),
    "all that 64 bits hold": length(b" 18446744073709551615", "nothing but more bytes can come"),
    "a folded length": length(b"\r\n 5", "CVE-2024-27982 (node)"),
}

CODINGS = {
    "chunked": Case("RFC 9112, 7.1", chunked(CHUNKS), (HELLO, PASSED)),
    "in capitals": Case("RFC 9112, 7", post(b"TRANSFER-ENCODING: CHUNKED", body=CHUNKS), (HELLO, PASSED)),
    "behind a tab": Case("RFC 9112, 5", post(b"Transfer-Encoding:\tchunked", body=CHUNKS), (HELLO, PASSED)),
    "before a blank": Case("RFC 9112, 5", post(b"Transfer-Encoding: chunked ", body=CHUNKS), (HELLO, PASSED)),
    "gzip, chunked": coding(b" gzip, chunked"),
    "chunked, gzip": coding(b" chunked, gzip", "RFC 9112, 6.3"),
    "chunked twice": coding(b" chunked, chunked"),
    "identity, chunked": coding(b" identity, chunked", "CVE-2024-1135 (gunicorn)"),
    "identity": coding(b" identity"),
    "a comma in front": coding(b" ,chunked"),
    "a comma behind": coding(b" chunked,"),
    "a parameter": coding(b" chunked;a=b", "RFC 9112, 7.1"),
    "in quotes": coding(b' "chunked"'),
    "with an x": coding(b" xchunked", "CL.TE with an obscured coding"),
    "a vertical tab before it": coding(b" \x0bchunked", "gunicorn issue 3364"),
    "a form feed behind it": coding(b" chunked\x0c", "gunicorn issue 3364"),
    "a no-break space before it": coding(b" \xa0chunked", "gunicorn issue 3364"),
    "a NUL behind it": coding(b" chunked\x00"),
    "empty": coding(b""),
    "two fields": Case(
        "CVE-2020-8287 (node)",
        post(b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity", body=CHUNKS),
    ),
    "two fields, chunked last": Case(
        "CVE-2024-1135 (gunicorn)",
        post(b"Transfer-Encoding: identity", b"Transfer-Encoding: chunked", body=CHUNKS),
    ),
    "in HTTP/1.0": Case("RFC 9112, 6.1", post(b"Transfer-Encoding: chunked", body=CHUNKS, version=b"1.0")),
    "a folded coding": coding(b"\r\n chunked", "CVE-2022-32215 (llhttp)"),
    "a coding in a fold": Case(
        "RFC 9112, 5.2", post(b"X: y", b" Transfer-Encoding: chunked", b"Content-Length: 5")
    ),
}

NAMES = {
    "a space before the colon": Case("CVE-2021-22959 (llhttp)", post(b"Content-Length : 5")),
    "a tab before the colon": Case("RFC 9112, 5.1", post(b"Content-Length\t: 5")),
    "a vertical tab before the colon": Case(
        "RFC 9112, 5.1", post(b"Transfer-Encoding\x0b: chunked", body=CHUNKS)
    ),
    "a no-break space before the colon": Case("gunicorn issue 3091", post(b"Content-Length\xa0: 5")),
    "a NUL in a name": Case("RFC 9110, 5.1", post(b"Content\x00-Length: 5")),
    "a space in a name": Case("RFC 9110, 5.1", get(b"X Y: z")),
    "a bracket in a name": Case("RFC 9110, 5.1", get(b"X[0]: z")),
    "a letter beyond ASCII in a name": Case("RFC 9110, 5.1", get(b"X\xe9: z")),
    "no name": Case("RFC 9110, 5.1", get(b": z")),
    "no colon": Case("RFC 9112, 5", get(b"X")),
    "a blank before the first field": Case("RFC 9112, 2.2", b"GET /a HTTP/1.1\r\n Host: x\r\n\r\n"),
    "a field that goes on": Case("RFC 9112, 5.2", get(b"X: y", b" z")),
    "an empty field": Case("RFC 9112, 5", get(b"X:"), (GET, PASSED)),
    "a field beyond ASCII": Case("RFC 9110, 5.5", get(b"X: \xe9"), (GET, PASSED)),
    "a NUL in a value": Case("RFC 9110, 5.5", get(b"X: a\x00b")),
    "a control character in a value": Case("RFC 9110, 5.5", get(b"X: a\x01b")),
    "a DEL in a value": Case("RFC 9110, 5.5", get(b"X: a\x7fb")),
}

LINE_ENDS = {
    "LF alone": Case("CVE-2022-32214 (llhttp)", b"GET /a HTTP/1.1\nHost: x\n\n"),
    "LF alone behind a field": Case("CVE-2022-32214 (llhttp)", get(b"X: y\nZ: 1")),
    "LF hides a coding": Case(
        "CVE-2022-32214 (llhttp)", post(b"X: y\nTransfer-Encoding: chunked", body=CHUNKS)
    ),
    "CR alone": Case("RFC 9112, 2.2", b"GET /a HTTP/1.1\rHost: x\r\r"),
    "CR in a value": Case("RFC 9112, 2.2", get(b"X: a\rb")),
    "CR hides a coding": Case(
        "CVE-2023-30589 (llhttp)", post(b"X: \rxTransfer-Encoding: chunked", body=CHUNKS)
    ),
    "CR CR LF": Case("RFC 9112, 2.2", get(b"X: a\r")),
    "CR before a colon": Case("RFC 9112, 5.1", get(b"X\r: a")),
    "LF ends the head": Case("RFC 9112, 2.2", b"GET /a HTTP/1.1\r\nHost: x\r\n\n"),
    "CR LF before a request": Case("RFC 9112, 2.2", b"\r\n" + get(), (GET, PASSED)),
    "LF before a request": Case("RFC 9112, 2.2", b"\n" + get(), (GET, PASSED)),
    "CR LF between requests": Case("RFC 9112, 2.2", get() + b"\r\n" + get(), (GET, GET, PASSED)),
}

CHUNKS_OF_ALL_KINDS = {
    "capitals and zeros": Case(
        "RFC 9112, 7.1", chunked(b"0A\r\nhellohello\r\n000\r\n\r\n"), ("POST /a hellohello", PASSED)
    ),
    "an extension": Case("RFC 9112, 7.1.1", chunked(b'5;a=b;c="d"\r\nhello\r\n0;e\r\n\r\n'), (HELLO, PASSED)),
    "a trailer": Case("RFC 9112, 7.1.2", chunked(b"5\r\nhello\r\n0\r\nX: y\r\n\r\n"), (HELLO, PASSED)),
    "0x": size(b"0x5", "CVE-2022-24761 (waitress)"),
    "plus": size(b"+5", "CVE-2022-24761 (waitress)"),
    "minus": size(b"-5"),
    "underscore": size(b"0_5"),
    "a blank before the size": size(b" 5"),
    "a blank behind the size": size(b"5 "),
    "a tab behind the size": size(b"5\t"),
    "no size": size(b""),
    "no digit": size(b"g"),
    "an overflow": size(b"100000005".rjust(20, b"1")),
    "more digits than 64 bits": size(b"f" * 17),
    "many zeros": Case("RFC 9112, 7.1", chunked(b"0" * 40 + b"5\r\nhello\r\n0\r\n\r\n"), (HELLO, PASSED)),
    "an extension with LF": size(b"5;a\nb", "aiohttp and gunicorn: LF in an extension"),
    "an extension with CR": size(b"5;a\rb", "chunk extensions: line ends that only one side sees"),
    "an extension with NUL": size(b"5;\x00a"),
    "an extension that ends in LF": Case("CVE-2025-22871 (Go)", chunked(b"5;a\nhello\r\n0\r\n\r\n")),
    "a size that ends in LF": Case("CVE-2025-22871 (Go)", chunked(b"5\nhello\r\n0\r\n\r\n")),
    "a size that ends in CR": Case("CVE-2025-22871 (Go)", chunked(b"5\rhello\r\n0\r\n\r\n")),
    "data that ends in LF": Case("CVE-2025-43859 (h11)", chunked(b"5\r\nhello\n0\r\n\r\n")),
    "data that ends in anything": Case("CVE-2025-43859 (h11)", chunked(b"5\r\nhelloXX0\r\n\r\n")),
    "data that is longer": Case("RFC 9112, 7.1", chunked(b"5\r\nhello!\r\n0\r\n\r\n")),
    "data that is shorter": Case("RFC 9112, 7.1", chunked(b"5\r\nhell\r\n0\r\n\r\n")),
    "a trailer that is a length": Case(
        "RFC 9110, 6.5.1", chunked(b"5\r\nhello\r\n0\r\nContent-Length: 5\r\n\r\n")
    ),
    "a trailer that is a coding": Case(
        "RFC 9110, 6.5.1", chunked(b"5\r\nhello\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n")
    ),
    "a trailer with a space before the colon": Case(
        "RFC 9112, 5.1", chunked(b"5\r\nhello\r\n0\r\nX : y\r\n\r\n")
    ),
    "a trailer that ends in LF": Case("RFC 9112, 2.2", chunked(b"5\r\nhello\r\n0\r\nX: y\n\r\n")),
    "trailers that end in LF": Case("RFC 9112, 2.2", chunked(b"5\r\nhello\r\n0\r\n\n")),
    "the end left out": Case("RFC 9112, 7.1", chunked(b"5\r\nhello\r\n")),
}

REQUEST_LINES = {
    "two spaces": Case("RFC 9112, 3: may be taken", line(b"GET  /a  HTTP/1.1"), (GET, PASSED)),
    "a protocol like HTTP": Case("RFC 9112, 2.3", line(b"GET /a RTSP/1.0"), (GET,)),
    "a tab": Case("RFC 9112, 3", line(b"GET\t/a HTTP/1.1")),
    "a space in front": Case("RFC 9112, 3", line(b" GET /a HTTP/1.1")),
    "a space at the end": Case("RFC 9112, 3", line(b"GET /a HTTP/1.1 ")),
    "a space in the target": Case("RFC 9112, 3.2", line(b"GET /a b HTTP/1.1")),
    "a NUL in the target": Case("RFC 9112, 3.2", line(b"GET /a\x00b HTTP/1.1")),
    "a control character in the target": Case("RFC 9112, 3.2", line(b"GET /a\x01b HTTP/1.1")),
    "a letter beyond ASCII in the target": Case("RFC 9112, 3.2", line(b"GET /\xc3\xa9 HTTP/1.1")),
    "a fragment": Case("RFC 9112, 3.2", line(b"GET /a#b HTTP/1.1")),
    "no target": Case("RFC 9112, 3", line(b"GET HTTP/1.1")),
    "no version": Case("HTTP/0.9", b"GET /a\r\n\r\n"),
    "version 0.9": Case("RFC 9112, 2.3", line(b"GET /a HTTP/0.9")),
    "version 1.2": Case("RFC 9112, 2.3", line(b"GET /a HTTP/1.2")),
    "version 2.0": Case("RFC 9112, 2.3", line(b"GET /a HTTP/2.0")),
    "version 1.10": Case("RFC 9112, 2.3", line(b"GET /a HTTP/1.10")),
    "version 01.1": Case("RFC 9112, 2.3", line(b"GET /a HTTP/01.1")),
    "version 1,1": Case("CVE-2024-23829 (aiohttp)", line(b"GET /a HTTP/1,1")),
    "version in small letters": Case("RFC 9112, 2.3", line(b"GET /a http/1.1")),
    "another protocol": Case("RFC 9112, 2.3", line(b"GET /a FTP/1.1")),
    "a method in small letters": Case("RFC 9110, 9.1: methods are case-sensitive", line(b"get /a HTTP/1.1")),
    "a method of nobody": Case("RFC 9110, 9.1: 501", line(b"FROB /a HTTP/1.1")),
    "a method with a bracket": Case("RFC 9110, 9.1", line(b"GE(T /a HTTP/1.1")),
    "CONNECT": Case("RFC 9110, 9.3.6", line(b"CONNECT x:80 HTTP/1.1")),
    "CONNECT with a path": Case("RFC 9110, 9.3.6", line(b"CONNECT /a HTTP/1.1")),
    "an address": Case("RFC 9112, 3.2.2", line(b"GET http://x/a HTTP/1.1"), (GET, PASSED)),
    "an address without a host": Case("RFC 9112, 3.2.2", line(b"GET http:///a HTTP/1.1")),
    "an address with a user": Case("RFC 9110, 4.2.4", line(b"GET http://u@x/a HTTP/1.1")),
    "an address of another kind": Case("RFC 9112, 3.2.2", line(b"GET ftp://x/a HTTP/1.1")),
    "an authority": Case("RFC 9112, 3.2.3", line(b"GET x:80 HTTP/1.1")),
    "a star for GET": Case("RFC 9112, 3.2.4", line(b"GET * HTTP/1.1")),
    "a TLS handshake": Case(
        "a client that takes us for another", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64)
    ),
    "NULs": Case("RFC 9112, 3", bytes(64)),
    "a byte order mark": Case("RFC 9112, 3", b"\xef\xbb\xbf" + get()),
}

HOSTS = {
    "no host": Case("RFC 9112, 3.2", b"GET /a HTTP/1.1\r\n\r\n"),
    "two hosts": Case("RFC 9112, 3.2", get(b"Host: y")),
    "the same host twice": Case("RFC 9112, 3.2", get(b"Host: x")),
    "two hosts in HTTP/1.0": Case("RFC 9112, 3.2", b"GET /a HTTP/1.0\r\nHost: x\r\nHost: y\r\n\r\n"),
    "an empty host": Case("RFC 9112, 3.2", b"GET /a HTTP/1.1\r\nHost:\r\n\r\n", (GET, PASSED)),
    "a host with a space": Case("RFC 9112, 3.2", b"GET /a HTTP/1.1\r\nHost: x y\r\n\r\n"),
    "a host with a path": Case("RFC 9112, 3.2", b"GET /a HTTP/1.1\r\nHost: x/y\r\n\r\n"),
    "a host with a user": Case("RFC 9112, 3.2", b"GET /a HTTP/1.1\r\nHost: u@x\r\n\r\n"),
}

ORDER = {
    "behind the last request": Case("RFC 9112, 9.6", get(b"Connection: close") + get(), (GET,)),
    "behind a refused one": Case("nothing behind a doubt is a request", get(b"X : y") + get()),
    "before a refused one": Case("what was clear is answered", get() + get(b"X : y") + get(), (GET,)),
    "an expectation": Case("RFC 9110, 10.1.1: may be 417", post(b"Content-Length: 5", b"Expect: a-miracle")),
    "another protocol, with a body": Case(
        "RFC 9110, 7.8: may be ignored",
        post(b"Content-Length: 5", b"Connection: upgrade", b"Upgrade: h2c"),
        (HELLO, PASSED),
    ),
}

CASES = {
    f"{group}: {name}": case
    for group, cases in {
        "length": LENGTHS,
        "coding": CODINGS,
        "field": NAMES,
        "line end": LINE_ENDS,
        "chunk": CHUNKS_OF_ALL_KINDS,
        "request line": REQUEST_LINES,
        "host": HOSTS,
        "order": ORDER,
    }.items()
    for name, case in cases.items()
}

# What h11, the parser of the stock engine, makes of a case where it differs from the table, by the reason.
# Nearly all of it is leniency that the standard allows; the engine of this server refuses what it may.
STOCK_DIFFERS: dict[str, dict[str, tuple[str, ...]]] = {
    "The coding wins over a length, as RFC 9112, 6.3 allows.": {
        "length: length, then coding": (HELLO, PASSED),
        "length: coding, then length": (HELLO, PASSED),
        "length: coding and a length of 0": (HELLO, PASSED),
    },
    "Equal lengths are one, as RFC 9110, 8.6 allows.": {
        "length: the same length twice": (HELLO, PASSED),
        "length: a list of the same length": (HELLO, PASSED),
    },
    "Folded lines are joined by a space, as RFC 9112, 5.2 allows.": {
        "length: a folded length": (HELLO, PASSED),
        "coding: a folded coding": (HELLO, PASSED),
        "coding: a coding in a fold": (HELLO, PASSED),
        "field: a field that goes on": (GET, PASSED),
    },
    "LF alone ends a line, as RFC 9112, 2.2 allows.": {
        "line end: LF alone": (GET, PASSED),
        "line end: LF alone behind a field": (GET, PASSED),
        "line end: LF hides a coding": (HELLO, PASSED),
        "line end: LF ends the head": (GET, PASSED),
        "chunk: a trailer that ends in LF": (HELLO, PASSED),
        "chunk: trailers that end in LF": (HELLO, PASSED),
    },
    "Empty lines before a request are not passed over, though RFC 9112, 2.2 says that one should.": {
        "line end: CR LF before a request": (),
        "line end: LF before a request": (),
        "line end: CR LF between requests": (GET,),
    },
    "Control characters but NUL and line ends pass in values, for the sake of cookies that have them.": {
        "field: a control character in a value": (GET, PASSED),
        "field: a DEL in a value": (GET, PASSED),
    },
    "Blanks behind the size of a chunk pass, and what an extension holds is not looked at.": {
        "chunk: a blank behind the size": (HELLO, PASSED),
        "chunk: a tab behind the size": (HELLO, PASSED),
        "chunk: an extension with CR": (HELLO, PASSED),
        "chunk: an extension with NUL": (HELLO, PASSED),
    },
    "A size has at most twenty digits.": {"chunk: many zeros": ()},
    "Trailers are dropped without a look at their names.": {
        "chunk: a trailer that is a length": (HELLO, PASSED),
        "chunk: a trailer that is a coding": (HELLO, PASSED),
    },
    "HTTP/1.0 may be chunked.": {"coding: in HTTP/1.0": (HELLO,)},
    "A request line has exactly two spaces, and the protocol is HTTP; llhttp is lenient there.": {
        "request line: two spaces": (),
        "request line: a protocol like HTTP": (),
    },
    "Any version of one digit each is taken for the nearest one.": {
        "request line: version 0.9": (GET,),
        "request line: version 1.2": (GET, PASSED),
        "request line: version 2.0": (GET, PASSED),
    },
    "Any method is the application's business, and small letters are made capitals.": {
        "request line: a method in small letters": (GET, PASSED),
        "request line: a method of nobody": ("FROB /a", PASSED),
        "request line: CONNECT": ("CONNECT x:80",),
        "request line: CONNECT with a path": ("CONNECT /a",),
    },
    "Any target is the application's business; the hot door and Quart find nothing there.": {
        "request line: a fragment": ("GET /a#b", PASSED),
        "request line: an address without a host": ("GET http:///a", PASSED),
        "request line: an address with a user": ("GET http://u@x/a", PASSED),
        "request line: an address of another kind": ("GET ftp://x/a", PASSED),
        "request line: an authority": ("GET x:80", PASSED),
        "request line: a star for GET": ("GET *", PASSED),
    },
    "What stands in Host is not looked at.": {
        "host: a host with a space": (GET, PASSED),
        "host: a host with a path": (GET, PASSED),
        "host: a host with a user": (GET, PASSED),
    },
    "Expectations of another kind are ignored, as RFC 9110, 10.1.1 allows.": {
        "order: an expectation": (HELLO, PASSED)
    },
}

ENDLESS = ("length: all that 64 bits hold", "chunk: the end left out")
"""Not malformed, only never complete: ended with the client, without an answer."""


async def outcome(wired: Wired, seen: list[str], data: bytes) -> tuple[tuple[str, ...], bytes]:
    """The requests that the application saw, and everything that came back."""
    del seen[:]
    peer = await wired.connect()
    try:
        await peer.send(data + PROBE)
        await wait_all_tasks_blocked()
        await peer.half_close()
    except trio.BrokenResourceError:
        pass
    returned = await peer.rest()
    await peer.close()
    return tuple(seen), returned


def recorder(seen: list[str]) -> Any:
    async def http(scope: Scope, receive: Receive, send: Send) -> None:
        body = await whole_body(receive)
        if body is None:
            return
        path = scope["path"].removeprefix("http://x")
        seen.append(f"{scope['method']} {path} {body.decode('latin1')}".rstrip())
        await reply(send, b"seen")

    return application(http)


@pytest.mark.parametrize("engine", ["fast", "stock"])
async def test_each_stream_of_bytes_means_what_the_table_says(engine: str) -> None:
    differs = {name: seen for group in STOCK_DIFFERS.values() for name, seen in group.items()}
    assert differs.keys() <= CASES.keys()
    seen: list[str] = []
    wrong = {}
    async with serving(recorder(seen), engine) as wired:
        for name, case in CASES.items():
            expected = differs.get(name, case.seen) if engine == "stock" else case.seen
            requests, _ = await outcome(wired, seen, case.data)
            if requests != expected:
                wrong[name] = f"{requests} instead of {expected}"
    assert wrong == {}


def test_the_engines_never_read_the_same_bytes_as_different_requests() -> None:
    """One may refuse what the other takes, or stop sooner; but a request is the same for both."""
    for group in STOCK_DIFFERS.values():
        for name, stock in group.items():
            ours = CASES[name].seen
            shorter = min(len(ours), len(stock))
            assert ours[:shorter] == stock[:shorter], name


async def test_what_is_refused_is_told_in_the_shape_of_errors() -> None:
    """One answer for each request that was clear, then one refusal, then the end."""
    seen: list[str] = []
    async with serving(recorder(seen)) as wired:
        for name, case in CASES.items():
            if case.seen[-1:] == (PASSED,) or name in ENDLESS:
                continue
            peer = await wired.connect()
            await peer.send(case.data + PROBE)
            for _ in case.seen:
                answer = await peer.answer()
                assert answer is not None, name
                assert answer.body == b"seen", name
            if name not in ("order: behind the last request", "request line: a protocol like HTTP"):
                refused = await peer.answer()
                assert refused is not None, name
                assert refused.error()[0] in (400, 417, 501, 505), name
                assert refused.header(b"connection") == b"close", name
            assert await peer.answer() is None, name
            await peer.close()


@pytest.mark.parametrize("name", ["length: a length", "chunk: an extension", "order: before a refused one"])
async def test_the_meaning_does_not_hang_on_how_the_bytes_are_split(name: str) -> None:
    seen: list[str] = []
    case = CASES[name]
    async with serving(recorder(seen)) as wired:
        for i in range(1, len(case.data)):
            del seen[:]
            peer = await wired.connect()
            await peer.send(case.data[:i])
            await wait_all_tasks_blocked()
            await peer.send(case.data[i:] + PROBE)
            await peer.rest()
            await peer.close()
            assert tuple(seen) == case.seen, i


async def test_each_case_means_the_same_byte_by_byte() -> None:
    seen: list[str] = []
    wrong = {}
    async with serving(recorder(seen)) as wired:
        for name, case in CASES.items():
            del seen[:]
            peer = await wired.connect()
            for i in range(len(case.data)):
                try:
                    await peer.send(case.data[i : i + 1])
                except trio.BrokenResourceError:
                    break
                await trio.lowlevel.checkpoint()
            requests = [each for each in case.seen if each != PASSED]
            await wait_all_tasks_blocked()
            await peer.close()
            if seen != requests:
                wrong[name] = f"{seen} instead of {requests}"
    assert wrong == {}
