"""The engine of a process: what it serves, on what it listens, and what both ways of serving share.

A server alone has one engine (`serve.py`); of several processes each has one (`serve_processes.py`).
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

import trio

from trunkline.actors.core.runtime.loop_watch import LoopWatch
from trunkline.http.calls.dispatch import Dispatcher
from trunkline.http.calls.errors import protocol_error
from trunkline.http.experiences.certificates import DomainCertificates
from trunkline.http.experiences.layer import ExperienceHosts
from trunkline.http.hosting.logs import access_log_of
from trunkline.http.hosting.tls_files import TlsConfig
from trunkline.http.mqtt.service import MqttService
from trunkline.http.site.site import Site
from trunkline.http.wire.accepting import Listener
from trunkline.http.wire.asgi import Application
from trunkline.http.wire.byte_session import ByteProtocol
from trunkline.http.wire.engine import Engine
from trunkline.http.wire.fast_path import FastPath
from trunkline.limits.settings import Settings


class Served(NamedTuple):
    """What a server serves, and how."""

    dispatcher: Dispatcher
    pages: Site
    settings: Settings
    config: TlsConfig


def use_domains(hosts: ExperienceHosts, settings: Settings, config: TlsConfig) -> None:
    """Use the certificates of domains for the connections to them."""
    config.context_of = DomainCertificates(
        hosts.certificate_of,
        config.alpn_protocols,
        settings.limits.experience_certificates_max,
        lambda: config.authorities,
    ).context_of


def engine_of(
    app: Application,
    fast_path: FastPath | None,
    dispatcher: Dispatcher,
    settings: Settings,
    config: TlsConfig,
    listeners: Sequence[Listener],
) -> Engine:
    """The engine of this process; `listeners` are those beside the sockets of `config`."""
    return Engine(
        app,
        config,
        settings.limits,
        protocol_error,
        fast_path=fast_path,
        log_access=access_log_of(settings),
        http2_prior_knowledge=settings.http2_prior_knowledge,
        behind_proxy=settings.trust_forwarded_for,
        listeners=listeners,
        lap=dispatcher.system.component(LoopWatch).lap,
    )


async def run_engine(
    nursery: trio.Nursery, run: Callable[..., Awaitable[None]], task_status: trio.TaskStatus[None]
) -> None:
    """Run an engine, then cancel the other tasks of the server."""
    async with trio.open_nursery() as server:
        # `start` returns when it listens; the nursery then waits until the engine ends.
        await server.start(run)
        task_status.started()
    nursery.cancel_scope.cancel()


def mqtt_protocol(dispatcher: Dispatcher) -> ByteProtocol:
    """What is spoken on the connections of a listener for MQTT."""
    service = dispatcher.system.component(MqttService)
    return ByteProtocol(service.session_for, service.bounds)


def mqtt_listeners(
    protocol: ByteProtocol, sockets: Sequence[tuple[socket.socket, bool]]
) -> Sequence[Listener]:
    """The listeners for MQTT, on sockets that are bound. The engine closes their sockets."""
    return [
        Listener(socket.socket(fileno=sock.detach()), tls=tls, protocol=protocol) for sock, tls in sockets
    ]
