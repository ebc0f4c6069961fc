"""Opening the session of an integration: dialling, the handshake, and what a broker is told.

Imported when an integration is connected (`core/runtime/late_imports.py`), because the libraries of both protocols are
large.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import trio

from trunkline.actors.connections.integrations.mqtt import Account, open_mqtt
from trunkline.actors.connections.integrations.resource import unsealed
from trunkline.actors.connections.integrations.session import Session
from trunkline.actors.connections.integrations.websocket import (
    Rejected,
    WebsocketStream,
    basic_auth,
    open_websocket,
    shake_hands,
)
from trunkline.actors.core.outgoing.dialing import Tls, dial
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.runtime.ref import Ref
from trunkline.store.keyring import Keyring

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.system import System

__all__ = ["Opening", "Rejected"]

_PATH: Final = "/mqtt"
"""The path of a broker behind WebSocket, if the host has none."""


class Opening:
    """Opens sessions of one integration."""

    def __init__(self, system: System, ref: Ref, settings: Doc, *, private: bool) -> None:
        self._system = system
        self._limits = system.limits
        self._ref = ref
        self._settings = settings
        self._private = private

    async def open(self, nursery: trio.Nursery) -> Session:
        """Dial, shake hands and subscribe. Raises `Failed`, `Undelivered` or, in the nursery, `Rejected`."""
        settings = unsealed(self._system.component(Keyring), self._ref.id, self._settings)
        config = settings[f"{settings['integrationType']}Config"]
        if settings["integrationType"] == "mqtt":
            return await self._open_mqtt(nursery, config, settings["topics"])
        return await self._open_websocket(nursery, config)

    async def _open_mqtt(self, nursery: trio.Nursery, config: Doc, topics: list[str]) -> Session:
        protocol = config["protocol"]
        host, _, path = config["host"].partition("/")
        tls = _tls(config) if protocol in ("mqtts", "wss") else None
        stream: trio.abc.Stream
        dialled = stream = await dial(host, config["port"], tls, private=self._private)
        try:
            if protocol in ("ws", "wss"):
                stream = WebsocketStream(
                    await shake_hands(
                        nursery,
                        dialled,
                        f"[{host}]:{config['port']}" if ":" in host else f"{host}:{config['port']}",
                        f"/{path}" if path else _PATH,
                        [],
                        bytes_max=self._limits.integration_message_bytes_max,
                        subprotocols=["mqtt"],
                    )
                )
            account = Account(
                # At most 23 characters, which every broker takes; the first digit of an id hardly ever changes.
                config.get("clientId") or self._ref.id.hex()[1:],
                config.get("username"),
                config.get("password"),
                config.get("clean", True),
                config.get("protocolVersion", "3.1.1"),
                topics,
            )
            return await open_mqtt(
                nursery,
                stream,
                account,
                bytes_max=self._limits.integration_message_bytes_max,
                timeout_s=self._limits.outgoing_timeout_s,
                now_ms=self._system.clock.wall_ms,
            )
        except BaseException:
            await trio.aclose_forcefully(dialled)
            raise

    async def _open_websocket(self, nursery: trio.Nursery, config: Doc) -> Session:
        url = urlsplit(config["url"])
        assert url.hostname is not None
        secure = url.scheme == "wss"
        port = url.port or (443 if secure else 80)
        dialled = await dial(url.hostname, port, _tls(config) if secure else None, private=self._private)
        headers = basic_auth(config.get("username"), config.get("password"))
        for each in config.get("headers", ()):
            headers.append((each["headerKey"].encode(), each["headerValue"].encode()))
        try:
            return await open_websocket(
                nursery,
                dialled,
                url.netloc,
                f"{url.path or '/'}{'?' if url.query else ''}{url.query}",
                headers,
                bytes_max=self._limits.integration_message_bytes_max,
                timeout_s=self._limits.outgoing_timeout_s,
                now_ms=self._system.clock.wall_ms,
            )
        except BaseException:
            await trio.aclose_forcefully(dialled)
            raise


def _tls(config: Doc) -> Tls:
    return Tls(
        config.get("caCertificate"),
        config.get("certificate"),
        config.get("privateKey"),
        not config.get("disableSSLVerification", False),
    )
