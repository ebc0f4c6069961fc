"""Where a server listens: its sockets, and the configuration of the engine on them.

Owns how a socket is bound, and which settings are those of the engine. Does not own what is served (`serve.py`).
"""

from __future__ import annotations

import logging
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from trunkline.http.hosting.tls_files import TlsConfig
from trunkline.http.wire.accepting import address_of
from trunkline.limits.settings import Settings


class MqttPort(NamedTuple):
    """A port on which MQTT is spoken."""

    number: int
    tls: bool


def bind(host: str, port: int, setting: str = "--host or --port") -> socket.socket:
    """Return a socket bound to the address, not listening yet.

    Raises `OSError` with a sentence for the operator that names the setting.
    """
    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
    except (OSError, UnicodeError) as error:
        sock.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise OSError(f"{where} cannot be listened on: {reason}. Choose another {setting}.") from error
    return sock


def bind_if_free(host: str, port: int) -> socket.socket | None:
    """Return a socket that listens, so that nothing else takes the port any more; None where something has it."""
    try:
        sock = bind(host, port)
    except OSError:
        return None
    try:
        sock.listen()
    except OSError:
        sock.close()
        return None
    return sock


class Sockets(NamedTuple):
    """The sockets of a server, bound: that of HTTP, and those of MQTT, each with whether it is for TLS."""

    http: socket.socket
    mqtt: list[tuple[socket.socket, bool]]

    @property
    def mqtt_ports(self) -> list[MqttPort]:
        """The ports of MQTT."""
        return [MqttPort(sock.getsockname()[1], tls) for sock, tls in self.mqtt]


@contextmanager
def bound(settings: Settings, mqtt_port_if_free: int | None = None) -> Iterator[Sockets]:
    """Bind the sockets of the settings. Raises `OSError` with a sentence for the operator.

    `mqtt_port_if_free` is a port for MQTT beside those of the settings, which is left out if something else has it.
    """
    with ExitStack() as held:
        http = held.enter_context(bind(settings.host, settings.port))
        mqtt = [
            (held.enter_context(bind(settings.host, port)), tls)
            for port, tls in ((settings.mqtt_port, False), (settings.mqtt_tls_port, True))
            if port is not None
        ]
        if mqtt_port_if_free is not None and (free := bind_if_free(settings.host, mqtt_port_if_free)):
            mqtt.append((held.enter_context(free), False))
        yield Sockets(http, mqtt)


def url_of(settings: Settings, sock: socket.socket) -> str:
    """The URL at which a server listens with these settings."""
    return address_of(sock, tls=settings.certfile is not None)


def reached_here(url: str) -> str:
    """The URL at which this machine reaches a server that listens at `url`, which may be all addresses."""
    return url.replace("://0.0.0.0:", "://127.0.0.1:").replace("://[::]:", "://[::1]:")


def engine_config(settings: Settings) -> TlsConfig:
    """The configuration of Hypercorn, without the socket. Raises `SettingsError`."""
    limits = settings.limits
    config = TlsConfig()
    config.backlog = limits.backlog_length_max
    config.graceful_timeout = limits.drain_s
    config.keep_alive_timeout = limits.connection_idle_s
    # A busy device keeps its connection: the default bound would close it after a thousand calls.
    config.keep_alive_max_requests = sys.maxsize
    config.h11_max_incomplete_size = limits.header_bytes_max
    config.include_server_header = False
    config.errorlog = logging.getLogger("hypercorn.error")
    # A TLS handshake has the same deadline as a request head.
    config.ssl_handshake_timeout = limits.head_timeout_s
    config.use(settings)
    return config
