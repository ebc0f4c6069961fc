"""The port on which the machines of one server reach each other: the one that owns a partition serves the doors of all.

Doors and other owners connect to a Unix socket of their own machine. Where another machine owns the partition, the
bytes of each such connection are passed on to it, over mutual TLS (`hosting/machine_tls.py`), and from there to its own
Unix socket. So neither doors nor owners know of other machines. Each process of a partition has a port.

Owns these connections: each begins with a byte that says what it is for. Does not own who owns the data, nor what is
said on them.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final, NoReturn, Self

import structlog
import trio

from trunkline.actors.core.values.store_errors import StoreError
from trunkline.actors.core.values.store_partitions import partition_directory
from trunkline.actors.maintenance.machine import Machine
from trunkline.http.hosting.invitations import Invitations, invited_contexts, name_of
from trunkline.http.hosting.machine_tls import NAME, Contexts, contexts_of
from trunkline.http.hosting.sockets import bind
from trunkline.http.hosting.unix_sockets import bound_in, connect_in
from trunkline.http.processes.channel import SOCKET_NAME
from trunkline.http.processes.machine_copy import receive_copy, send_copy
from trunkline.limits.errors import SettingsError
from trunkline.limits.settings import Settings

PROTOCOL: Final = "trunkline-machines-1"
"""Machines with another version of what doors and owners say have another name here: they do not connect."""
WATCH: Final = b"W"
"""Nothing is said: it is open as long as the other machine is there and owns the data."""
PASS_ON: Final = b"P"
"""What follows is for the Unix socket of the owner, and back."""
JOIN: Final = b"J"
"""Only of a machine with an invitation: what follows is what all machines share (`maintenance/invited.py`)."""
COPY: Final = b"C"
"""What follows is the store of the owner (`machine_copy.py`)."""
BEGIN_S: Final = 5.0
"""How long a connection may take until it has said what it is for."""
BEGINNING_MAX: Final = 64
"""Connections that have not yet; further ones are closed at once."""
AGAIN_S: Final = 0.2
"""How often it is looked who owns the data, and after a connection that failed."""
COPY_AGAIN_S: Final = 1.0
"""After a copy that was not whole, and while no machine is known that has the data, so long until the next try."""
UNACKNOWLEDGED_MS: Final = 5000
"""A connection ends when the other machine acknowledges nothing for so long."""
BACKLOG: Final = 1024
PORT_MAX: Final = 65_535
SHARED_BYTES_MAX: Final = 4 * 1024 * 1024

_FAULTS: Final = (OSError, trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError)
_log = structlog.get_logger("trunkline.processes")


class MachinePort:
    """The port of this process, in whose directory `directory` doors look for the owner."""

    def __init__(self, sock: socket.socket, directory: Path, connections_max: int) -> None:
        self._sock = sock
        self._directory = directory
        self._connections_max = connections_max
        self._open = 0
        self._beginning = 0
        self._is_copied = False
        self._contexts: Contexts | None = None
        self._invitations = Invitations(PROTOCOL)

    @classmethod
    def bound(cls, settings: Settings, partition: int = 0) -> Self:
        """Bind the port of the settings, for a further partition one that is higher by its number, or any on the
        address of clients. Raises `OSError` with a sentence."""
        host, port = host_and_port(settings.cluster_address or f"{settings.host}:0")
        if port + partition > PORT_MAX:
            raise SettingsError(
                "cluster_address", f"leaves no port for partition {partition}", "choose a lower one"
            )
        directory = partition_directory(Path(settings.data_dir), partition)
        sock = bind(host, port and port + partition, "cluster_address")
        return cls(sock, directory, settings.limits.connections_max)

    @property
    def address(self) -> str:
        """Where other machines reach this one."""
        host, port = self._sock.getsockname()[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def close(self) -> None:
        """Close the port."""
        self._sock.close()

    def _contexts_of(self, machine: Machine) -> Contexts:
        """The certificate of this process, made when it is first needed: then the secret of all machines is known."""
        if self._contexts is None:
            self._contexts = contexts_of(machine.key, PROTOCOL)
        return self._contexts

    # The machine that owns the data.

    async def serve(self, machine: Machine) -> NoReturn:
        """Take connections from other machines until cancelled."""
        contexts = self._contexts_of(machine)
        contexts.server.sni_callback = self._invitations.choose
        self._sock.listen(BACKLOG)
        listener = trio.SocketListener(trio.socket.from_stdlib_socket(self._sock))
        await trio.serve_listeners(partial(self._take, contexts, machine), [listener])

    def invite(self) -> str:
        """An invitation of another machine, as `join` takes it: the address, and a secret."""
        return f"{self.address}/{self._invitations.made()}"

    async def _take(self, contexts: Contexts, machine: Machine, stream: trio.SocketStream) -> None:
        if self._beginning >= BEGINNING_MAX or self._open >= self._connections_max:
            await trio.aclose_forcefully(stream)
            return
        self._open += 1
        try:
            async with _closed_at_once(stream):
                await self._serve(contexts, machine, stream)
        except _FAULTS as problem:
            _log.debug("a connection of another machine has ended", problem=str(problem))
        except StoreError as problem:
            _log.error("a machine that was invited cannot be given the secrets", reason=str(problem))
        finally:
            self._open -= 1

    async def _serve(self, contexts: Contexts, machine: Machine, stream: trio.SocketStream) -> None:
        self._beginning += 1
        try:
            with trio.fail_after(BEGIN_S):
                secure = await _secure(stream, contexts.server, server_side=True)
                purpose = await secure.receive_some(1)
        finally:
            self._beginning -= 1
        if secure.context is not contexts.server:
            if purpose == JOIN and self._invitations.take(secure.context):
                _log.info("a machine that was invited gets the secrets")
                await secure.send_all(machine.shared())
                await secure.aclose()
            return
        if purpose == WATCH:
            await secure.receive_some(1)
        elif purpose == PASS_ON:
            local = connect_in(self._directory, SOCKET_NAME)
            async with trio.SocketStream(trio.socket.from_stdlib_socket(local)) as owner:
                await _pass_on(secure, owner)
        elif purpose == COPY and not self._is_copied:
            self._is_copied = True
            try:
                await send_copy(secure, machine.copy_command)
            finally:
                self._is_copied = False

    # A machine that stands by.

    async def pass_on(self, machine: Machine) -> NoReturn:
        """Pass on what the doors of this machine say to the machine that owns the data, until cancelled."""
        client, told = self._contexts_of(machine).client, ""
        while True:
            address = machine.owner_address()
            if address is not None:
                try:
                    async with self._dialled(client, address, WATCH) as watch:
                        await self._pass_on_to(client, address, watch, machine.owner_address)
                    told = ""
                except _FAULTS as problem:
                    if str(problem) != told:
                        told = str(problem)
                        _log.warning(
                            "the machine that owns the data is not reached", address=address, problem=told
                        )
            await trio.sleep(AGAIN_S)

    async def _pass_on_to(
        self,
        client: ssl.SSLContext,
        address: str,
        watch: trio.abc.ReceiveStream,
        owner_address: Callable[[], str | None],
    ) -> None:
        """Do so until that machine is gone, or another one owns the data."""

        async def take(door: trio.SocketStream) -> None:
            try:
                async with door, self._dialled(client, address, PASS_ON) as owner:
                    await _pass_on(owner, door)
            except _FAULTS as problem:
                _log.debug("a connection to another machine has ended", problem=str(problem))

        async def end_with(watch: trio.abc.ReceiveStream) -> None:
            with suppress(*_FAULTS):
                await watch.receive_some(1)
            nursery.cancel_scope.cancel()

        with bound_in(self._directory, SOCKET_NAME) as sock:
            sock.listen(BACKLOG)
            listener = trio.SocketListener(trio.socket.from_stdlib_socket(sock))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(end_with, watch)
                nursery.start_soon(partial(trio.serve_listeners, take, [listener]))
                _log.info("clients are passed on to the machine that owns the data", address=address)
                while owner_address() == address:  # noqa: ASYNC110 - silence is no event
                    await trio.sleep(AGAIN_S)
                nursery.cancel_scope.cancel()

    async def fetch(self, machine: Machine) -> None:
        """Get a copy of the store of the machine that owns the data, into `machine.new_file()`."""
        client = self._contexts_of(machine).client
        while True:
            address = machine.owner_address()
            if address is not None:
                _log.info("the data are copied from the machine that owns them", address=address)
                try:
                    async with self._dialled(client, address, COPY) as owner:
                        size_bytes = await receive_copy(owner, machine.new_file())
                    _log.info("the data are copied", size_bytes=size_bytes)
                    return
                except _FAULTS as problem:
                    _log.warning("the data are not copied yet", address=address, problem=str(problem))
            await trio.sleep(COPY_AGAIN_S)

    @asynccontextmanager
    async def _dialled(
        self, client: ssl.SSLContext, address: str, purpose: bytes
    ) -> AsyncIterator[trio.SSLStream[trio.SocketStream]]:
        """A connection to another machine. Raises one of `_FAULTS`."""
        with trio.fail_after(BEGIN_S):
            stream = await trio.open_tcp_stream(*host_and_port(address))
        async with _closed_at_once(stream):
            with trio.fail_after(BEGIN_S):
                secure = await _secure(stream, client, server_side=False)
                await secure.send_all(purpose)
            yield secure


def host_and_port(address: str) -> tuple[str, int]:
    """The two parts of an address, such as 10.0.0.1:8470 or [::1]:8470."""
    host, _, port = address.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)


async def joined(invitation: str) -> bytes:
    """What the machine that has made an invitation shares. Raises `SettingsError`."""
    address, _, secret = invitation.partition("/")
    try:
        host, port = host_and_port(address)
    except ValueError:
        raise SettingsError(
            "the invitation", f"is {invitation!r}", "give what `trunkline cluster invite` has printed"
        ) from None
    try:
        with trio.fail_after(BEGIN_S):
            stream = await trio.open_tcp_stream(host, port)
    except (OSError, trio.TooSlowError) as problem:
        raise SettingsError(
            address,
            f"does not answer ({problem})",
            "see that the machine runs there that has invited this one",
        ) from None
    try:
        with trio.fail_after(BEGIN_S):
            async with _closed_at_once(stream):
                client = invited_contexts(secret, PROTOCOL).client
                secure = await _secure(stream, client, server_side=False, name=name_of(secret))
                await secure.send_all(JOIN)
                found = b""
                while len(found) < SHARED_BYTES_MAX and (piece := await secure.receive_some()):
                    found += piece
    except (*_FAULTS, ValueError) as problem:
        raise SettingsError(
            "the invitation",
            f"does not let this machine in{f' ({problem})' if str(problem) else ''}",
            "make a new one with `trunkline cluster invite`, with the same version of the program",
        ) from None
    return found


async def _secure(
    stream: trio.SocketStream, context: ssl.SSLContext, *, server_side: bool, name: str = NAME
) -> trio.SSLStream[trio.SocketStream]:
    """TLS on a new connection. Raises BrokenResourceError for a machine with another secret or another protocol."""
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_MS)
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, UNACKNOWLEDGED_MS // 1000)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
    secure = trio.SSLStream(
        stream,
        context,
        server_hostname=None if server_side else name,
        server_side=server_side,
        https_compatible=True,
    )
    await secure.do_handshake()
    if secure.selected_alpn_protocol() != PROTOCOL:
        raise trio.BrokenResourceError(
            "the other machine has another version, with which this one cannot speak"
        )
    return secure


@asynccontextmanager
async def _closed_at_once(stream: trio.SocketStream) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await trio.aclose_forcefully(stream)


async def _pass_on(one: trio.abc.Stream, other: trio.abc.Stream) -> None:
    """Pass on the bytes of two connections in both directions until one of them ends."""

    async def copy(source: trio.abc.ReceiveStream, target: trio.abc.SendStream) -> None:
        with suppress(*_FAULTS):
            while data := await source.receive_some():
                await target.send_all(data)
        nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(copy, one, other)
        nursery.start_soon(copy, other, one)
