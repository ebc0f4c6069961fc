"""`serve --demo`: the demo of the bench, run against the server of this process, and what it prints to be tried."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterator, Set
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import trio

from trunkline.actors import server_users
from trunkline.actors.core.values.clock import SystemClock
from trunkline.bench.demo import CURL_VARIABLE, DemoReady, curl_lines, run_demo
from trunkline.bench.demo_mqtt import replace_mqtt_key, subscribe_line
from trunkline.bench.demo_past import live_past
from trunkline.bench.demo_records import DOMAIN, Example, ensure_records
from trunkline.bench.errors import BenchError
from trunkline.http.hosting.terminal import announce, failure_message, warn
from trunkline.limits.settings import Settings

if TYPE_CHECKING:
    from trunkline.http.serve import RunningServer

MQTT_PORT: Final = 1883
"""The port for MQTT if none is set. Clients use it where they are given no other."""
DEMO_SCOPES = frozenset({"all.User"})
DEMO_PAUSE_S, DEMO_PAUSE_MAX_S = 1, 60
DEMO_TOKEN_SCOPES = frozenset({"all.Device.read", "device.sendCommand"})
"""The scopes of the token that is printed with the example calls of the demo."""
DEMO_TOKEN_TTL_S = 86_400


class DemoClock(SystemClock):
    """The machine's clocks, which the demo sets back once, to live through the week before its first start."""

    __slots__ = ("_elapsed_s", "_wall_s")

    def __init__(self) -> None:
        self._wall_s = self._elapsed_s = 0.0

    def move_to(self, at_s: float) -> None:
        """Let the time of day be this one now; what has passed for throttles never becomes less."""
        ahead_s = at_s - time.time()
        self._elapsed_s += max(0.0, ahead_s - self._wall_s)
        self._wall_s = 0.0 if abs(ahead_s) < 0.01 else ahead_s

    def wall_ms(self) -> int:
        return super().wall_ms() + math.ceil(1000 * self._wall_s)

    def monotonic_s(self) -> float:
        return super().monotonic_s() + self._elapsed_s


async def live_past_on(server: RunningServer, clock: DemoClock) -> None:
    """Live through the past of the demo, on a server that is new."""
    try:
        await live_past(server.url, _token(server, DEMO_SCOPES, None), clock.move_to)
    except* BenchError as problems:
        warn(f"The demo begins without its past: {failure_message(problems)}")


def demo_settings(settings: Settings) -> Settings:
    """The settings, in which the demo may have its domain."""
    if settings.experience_domains is not None:
        return settings
    return dataclasses.replace(settings, experience_domains=DOMAIN["domainName"])


def demo_mqtt_port(settings: Settings) -> int | None:
    """The port for MQTT that the demo opens if it is free: none beside one that is set or TLS, or if HTTP has it."""
    is_chosen = settings.mqtt_port is not None or settings.certfile is not None or settings.port == MQTT_PORT
    return None if is_chosen or settings.engine == "stock" else MQTT_PORT


async def run_demo_on(server: RunningServer) -> None:
    """Run the devices of the demo while the server runs, or until all of them are deleted; also if a token ends."""
    shown = False

    async def complete(token: str, ready: DemoReady) -> None:
        """Add the other records, and put the ids of all into the examples of the API's document."""
        nonlocal shown
        server.pages.show_examples(await ensure_records(token, ready, _examples()))
        if not shown:
            shown = True
            _show_demo(server, ready)
            await _show_mqtt(server, token, ready)

    async def run_once() -> None:
        token = _token(server, DEMO_SCOPES, None)
        async with trio.open_nursery() as nursery:
            await run_demo(
                server.url,
                token,
                on_ready=lambda ready: nursery.start_soon(complete, token, ready),
                mqtt=_mqtt_address(server),
            )

    pause_s = DEMO_PAUSE_S
    while True:
        try:
            await run_once()
            announce("All devices of the demo are deleted. The next start of the server creates them again.")
            return
        except* BenchError as problems:
            warn(f"The demo was interrupted and restarts: {failure_message(problems)}")
        await trio.sleep(pause_s)
        pause_s = min(2 * pause_s, DEMO_PAUSE_MAX_S)


def _examples() -> Iterator[Example]:
    """The examples that rows of plain resources give of a new record."""
    from trunkline.http.routes import TABLE

    for route in TABLE.routes:
        if route.resource is not None and route.new_id is not None and route.example is not None:
            yield route.resource.path_parameter, route.path, route.example


def log_in_hint(server: RunningServer) -> str:
    """Who logs in to the console when the password is not known to this process."""
    email = server_users.users(server.dispatcher.system)[0].email
    return f"Log in as {email} with the password that was set or shown at the first start."


def _token(server: RunningServer, scopes: Set[str], ttl_s: float | None) -> str:
    """A token of the oldest user."""
    dispatcher = server.dispatcher
    claims = {"typ": "user", "sub": server_users.users(dispatcher.system)[0].id}
    return dispatcher.tokens.issue(claims, scopes, dispatcher.system.clock.wall_ms(), ttl_s)


def _show_demo(server: RunningServer, ready: DemoReady) -> None:
    announce(
        "The devices of the demo report every two seconds. To try it, run these four lines in another terminal:"
    )
    announce(f"  export {CURL_VARIABLE}={_token(server, DEMO_TOKEN_SCOPES, DEMO_TOKEN_TTL_S)}")
    for line in curl_lines(ready):
        announce(f"  {line}")
    announce("The token is valid for a day, for reading devices and for sending them commands.")


def _mqtt_address(server: RunningServer) -> tuple[str, int] | None:
    """The host and port at which the server speaks MQTT without TLS; None if it does not."""
    port = next((port.number for port in server.mqtt_ports if not port.tls), None)
    return None if port is None else (urlsplit(server.url).hostname or "", port)


async def _show_mqtt(server: RunningServer, token: str, ready: DemoReady) -> None:
    """Print how to see what the devices publish, if there is a port for MQTT without TLS."""
    address = _mqtt_address(server)
    if address is None:
        return
    host, port = address
    key, secret = await replace_mqtt_key(token, ready)
    announce("To see what two of the devices publish by MQTT (the key is valid until the next start):")
    announce(f"  {subscribe_line(host, port, key, secret)}")
