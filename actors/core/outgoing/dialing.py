"""Outgoing connections to a host that a caller gives: its addresses are checked as those of HTTP calls, then dialled.

A name is resolved once, and the addresses that were checked are those that are connected to. Its certificate is that of
the name.
"""

from __future__ import annotations

import ssl
from typing import NamedTuple

import trio

from trunkline.actors.core.outgoing.http_calls import Address, Undelivered, reason_of, resolve
from trunkline.actors.core.runtime.threads import SHORT, in_thread
from trunkline.actors.core.values.certificate_chain import load_chain


class Tls(NamedTuple):
    """How a connection is secured. Texts are in PEM; `authority` replaces the well-known authorities."""

    authority: str | None = None
    certificate: str | None = None
    private_key: str | None = None
    verify: bool = True


Connection = trio.SocketStream | trio.SSLStream[trio.SocketStream]


async def dial(host: str, port: int, tls: Tls | None, *, private: bool) -> Connection:
    """Connect to a host, with TLS if `tls` is given. Raises `Undelivered`. The caller sets a deadline."""
    context = None if tls is None else await in_thread(SHORT, tls_context, tls)
    stream = await _connect(host, port, await resolve(host, port, private=private))
    if context is None:
        return stream
    secured = trio.SSLStream(stream, context, server_hostname=host, https_compatible=True)
    try:
        await secured.do_handshake()
    except BaseException as error:
        await trio.aclose_forcefully(stream)
        if isinstance(error, trio.BrokenResourceError):
            raise Undelivered(f"{host} does not accept TLS: {reason_of(error)}.") from None
        raise
    return secured


async def _connect(host: str, port: int, addresses: list[Address]) -> trio.SocketStream:
    failure = ""
    for address in addresses:
        try:
            return await trio.open_tcp_stream(str(address), port)
        except OSError as error:
            failure = reason_of(error)
    raise Undelivered(f"{host} cannot be reached at port {port}: {failure}.")


def tls_context(tls: Tls) -> ssl.SSLContext:
    """The context of a connection. Raises `Undelivered` for a certificate or a key that cannot be used."""
    if tls.authority is None:
        context = ssl.create_default_context()
    else:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            context.load_verify_locations(cadata=tls.authority)
        except (ssl.SSLError, ValueError):
            raise Undelivered("caCertificate cannot be read as certificates in PEM.") from None
    if not tls.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if tls.certificate is not None or tls.private_key is not None:
        _load_pair(context, tls.certificate or "", tls.private_key or "")
    return context


def _load_pair(context: ssl.SSLContext, certificate: str, private_key: str) -> None:
    """Let the context prove who we are."""
    try:
        load_chain(context, f"{certificate}\n{private_key}\n".encode())
    except (ssl.SSLError, ValueError, OSError):
        raise Undelivered("certificate and privateKey cannot be used together; give both in PEM.") from None
