"""Outgoing HTTP calls: posting JSON to a URL that a caller gives, protected against request forgery, and getting JSON
from a URL that an operator has configured. `http_requests.py` has requests of other forms.

Whoever may queue a job can make this server send a request from inside its network. So a URL must be public:
http or https, without credentials, and every network address of its host must be public. The request is sent to
the address that was checked (resolving the name again might give another one), with the name in `Host` and in
TLS. Redirects are not followed, the body of the answer is not read, and the whole attempt has a deadline.
Operators may allow their own networks (`callback_private_networks`).
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

import httpx
import msgspec
import trio

from trunkline.actors.core.runtime.late_imports import load
from trunkline.actors.core.runtime.threads import SHORT, in_thread
from trunkline.actors.core.values.errors import Invalid

ADDRESSES_MAX = 4
"""How many addresses of a host are tried in one attempt."""

_PIECES_PER_TURN = 32
"""Some of 50 us each; then it is the turn of others."""
_HEADERS = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "trunkline"}
"""Of each call that has none of its own."""
_GIVEN = ("/files/", "/webhooks/")
"""The paths of what a server gives to everybody, with or without a token."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_CLOUD_INTERNAL = (ipaddress.ip_network("192.0.0.0/24"), ipaddress.ip_network("168.63.129.16/32"))
"""Addresses of internal services of clouds that `ipaddress` considers public."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Undelivered(Exception):
    """A mail or a call was not accepted. The text is a sentence."""


def check_url(url: str, *, private: bool, field: str = "callbackUrl") -> None:
    """Raise `Invalid` for `field` if `url` cannot be called. `private` allows addresses that are not public."""
    try:
        parsed = httpx.URL(url)
        host = parsed.host  # decodes an internationalised name, which may be malformed
    except (httpx.InvalidURL, ValueError, TypeError) as error:
        raise Invalid(f"{field}: is not a URL: {error}.") from None
    if parsed.scheme not in ("http", "https") or not host:
        raise Invalid(f"{field}: must begin with http:// or https:// and name a host.")
    if parsed.port is not None and not 0 < parsed.port < 65_536:
        raise Invalid(f"{field}: {parsed.port} is not a port; ports are 1 to 65535.")
    if parsed.userinfo:
        raise Invalid(f"{field}: must not contain a user name or a password; put a token into its query.")
    if private:
        return
    literal = _ip_literal(host)
    if host.rstrip(".").lower().endswith("localhost") or (literal is not None and not is_public(literal)):
        raise Invalid(f"{field}: {host} is not a public address; this server calls only public ones.")


def shown_receiver(to: str) -> str:
    """An address of mail, or a URL, as it may be told to others: the query of a URL may contain a secret."""
    return to.partition("?")[0] if "://" in to else to


def is_given_here(url: str, base_url: str) -> bool:
    """Whether a URL is that of a public file or of a webhook of the server at `base_url`."""
    try:
        parsed, base = httpx.URL(url), httpx.URL(base_url)
        same = [(each.scheme, each.host, each.port) for each in (parsed, base)]
    except (httpx.InvalidURL, ValueError, TypeError):
        return False
    if not base.host or parsed.userinfo:
        return False
    begins = tuple(base.path.rstrip("/") + path for path in _GIVEN)
    return same[0] == same[1] and parsed.path.startswith(begins) and ".." not in parsed.path


def is_public(address: Address) -> bool:
    """Whether an address is public. IPv6 addresses that contain an IPv4 address are public only if that one is, too."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and address.teredo is not None:
            inner = address.teredo[1]
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None and not is_public(inner):
            return False
        if address.is_site_local:
            return False
    return (
        address.is_global
        and not address.is_private
        and not address.is_multicast
        and not address.is_reserved
        and not address.is_link_local
        and not address.is_loopback
        and not any(address in network for network in _CLOUD_INTERNAL)
    )


async def post(url: str, body: bytes, headers: dict[str, str], *, timeout_s: float, private: bool) -> None:
    """Post JSON once. Raises `Undelivered` with a sentence unless the answer is 2xx and comes in time."""
    parsed = httpx.URL(url)
    with trio.move_on_after(2 * timeout_s) as timeout:
        sent = {"Content-Type": "application/json", **headers}
        status = (await send("POST", parsed, body, sent, timeout_s, private=private)).status
    if timeout.cancelled_caught:
        raise Undelivered(f"{parsed.host} did not answer within {2 * timeout_s:g} seconds.")
    if not 200 <= status < 300:
        hint = " (redirects are not followed)" if 300 <= status < 400 else ""
        raise Undelivered(f"{parsed.host} answered with {status}{hint}; 200 to 299 was expected.")


async def get_json(url: str, headers: dict[str, str], *, timeout_s: float, bytes_max: int) -> tuple[int, Any]:
    """Get JSON once, from a URL that an operator has configured: its address may be private.

    Returns the status, and the value if the status is 200. Redirects are not followed, since they would take the
    headers with them. Raises `Undelivered` with a sentence if the answer does not come in time, is not valid JSON, or
    has more than `bytes_max` bytes.
    """
    parsed = httpx.URL(url)
    with trio.move_on_after(2 * timeout_s) as timeout:
        sent = {"Accept": "application/json", **headers}
        status, _, content = await send(
            "GET", parsed, None, sent, timeout_s, private=True, bytes_max=bytes_max
        )
    if timeout.cancelled_caught:
        raise Undelivered(f"{parsed.host} did not answer within {2 * timeout_s:g} seconds.")
    if status != 200:
        return status, None
    try:
        return status, msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError):
        raise Undelivered(f"{parsed.host} did not answer with JSON.") from None


async def get_public(url: str, *, timeout_s: float, bytes_max: int, private: bool = False) -> bytes:
    """Get a document once, from a public address. Raises `Undelivered` unless it comes in time and with status 200.

    `private` allows addresses that are not public.
    """
    parsed = httpx.URL(url)
    with trio.move_on_after(2 * timeout_s) as timeout:
        status, _, content = await send(
            "GET", parsed, None, {}, timeout_s, private=private, bytes_max=bytes_max
        )
    if timeout.cancelled_caught:
        raise Undelivered(f"{parsed.host} did not answer within {2 * timeout_s:g} seconds.")
    if status != 200:
        raise Undelivered(f"{parsed.host} answered with {status}; 200 was expected.")
    return content


async def download(
    url: str,
    write: Callable[[bytes], None],
    *,
    timeout_s: float,
    total_s: float,
    bytes_max: int,
    private: bool,
) -> None:
    """Get a large document, whose pieces are given to `write` in a worker thread.

    Raises `Undelivered` unless it comes whole and with status 200. `timeout_s` is for each step, `total_s` for all.
    `private` allows addresses that are not public.
    """

    async def take(piece: bytes) -> None:
        await trio.to_thread.run_sync(write, piece)

    parsed = httpx.URL(url)
    with trio.move_on_after(total_s) as timeout:
        received = await send(
            "GET", parsed, None, {}, timeout_s, private=private, bytes_max=bytes_max, take=take
        )
    if timeout.cancelled_caught:
        raise Undelivered(f"{parsed.host} did not send everything within {total_s:g} seconds.")
    if received.status != 200:
        raise Undelivered(f"{parsed.host} answered with {received.status}; 200 was expected.")


class Received(NamedTuple):
    """An answer. `content` is its body as it was sent, so it may be compressed."""

    status: int
    headers: httpx.Headers
    content: bytes


async def send(
    method: str,
    url: httpx.URL,
    body: bytes | None,
    headers: Mapping[str, str] | httpx.Headers,
    timeout_s: float,
    *,
    private: bool,
    bytes_max: int = 0,
    take: Callable[[bytes], Awaitable[None]] | None = None,
    context: ssl.SSLContext | None = None,
) -> Received:
    """Send a request once. If `bytes_max` is given, the body of the answer is read.

    With `take`, the pieces of the body of an answer with status 200 are given to it instead. `context` says how TLS is
    verified, if not by the well-known authorities. A redirect is an answer as any other: whatever its `Location` is,
    nobody has looked at it.
    """
    await load("trunkline.actors.core.outgoing.short_reads")
    from trunkline.actors.core.outgoing.short_reads import Transport

    port = url.port or (443 if url.scheme == "https" else 80)
    addresses = await resolve(url.raw_host.decode("ascii"), port, private=private)
    if url.scheme == "https" and context is None:
        context = await in_thread(SHORT, _tls_context)
    request_headers = httpx.Headers(headers)
    for name, value in _HEADERS.items():
        request_headers.setdefault(name, value)
    request_headers.setdefault("Host", url.netloc.decode("ascii"))
    extensions: dict[str, Any] = {
        "sni_hostname": url.raw_host.decode("ascii"),
        "timeout": httpx.Timeout(timeout_s).as_dict(),
    }
    failure = ""
    # Not a client, which reads the `Location` of a redirect also if it does not follow, and fails where it is no URL.
    async with Transport(context) as transport:
        for address in addresses:
            request = httpx.Request(
                method,
                url.copy_with(host=str(address)),
                content=body,
                headers=request_headers,
                extensions=extensions,
            )
            try:
                response = await transport.handle_async_request(request)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                failure = reason_of(error)
                continue
            except httpx.HTTPError as error:
                raise Undelivered(f"{url.host} did not answer: {reason_of(error)}.") from None
            try:
                content = b""
                if take is None and bytes_max:
                    content = await _content(response, url.host, bytes_max)
                elif take is not None and response.status_code == 200:
                    async for piece in _pieces(response, url.host, bytes_max):
                        await take(piece)
                return Received(response.status_code, response.headers, content)
            finally:
                await response.aclose()
    raise Undelivered(f"{url.host} cannot be reached: {failure}.")


async def _content(response: httpx.Response, host: str, bytes_max: int) -> bytes:
    return b"".join([piece async for piece in _pieces(response, host, bytes_max)])


async def _pieces(response: httpx.Response, host: str, bytes_max: int) -> AsyncIterator[bytes]:
    size = number = 0
    try:
        async for piece in response.aiter_raw():
            number += 1
            if number % _PIECES_PER_TURN == 0:
                await trio.lowlevel.checkpoint()
            size += len(piece)
            if size > bytes_max:
                raise Undelivered(f"{host} answered with more than {bytes_max} bytes.")
            yield piece
    except httpx.HTTPError as error:
        raise Undelivered(f"{host} did not answer completely: {reason_of(error)}.") from None


async def resolve(host: str, port: int, *, private: bool) -> list[Address]:
    """The addresses of a host. Raises `Undelivered` if there is none, or if one is not public."""
    try:
        found = await trio.socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, ValueError):  # a malformed name is a ValueError
        raise Undelivered(f"{host} cannot be resolved.") from None
    addresses = list(dict.fromkeys(ipaddress.ip_address(str(each[4][0]).partition("%")[0]) for each in found))
    if not private and not all(map(is_public, addresses)):
        raise Undelivered(
            f"{host} resolves to an address that is not public; this server calls only public ones."
        )
    return addresses[:ADDRESSES_MAX]


def reason_of(error: BaseException) -> str:
    """Why a connection failed, without a period: what the system or TLS says of it, else the first text in the chain of
    causes."""
    cause: BaseException | None = error
    text = ""
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not valid ({cause.verify_message})"
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror.rstrip(".")
        text = text or str(cause)
        inner = cause.exceptions[0] if isinstance(cause, BaseExceptionGroup) else None
        cause = inner or cause.__cause__ or cause.__context__
    return text.rstrip(".") or type(error).__name__


def _ip_literal(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None


@cache
def _tls_context() -> ssl.SSLContext:
    """The context that verifies certificates. Cached, since loading the authorities takes long."""
    return ssl.create_default_context()
