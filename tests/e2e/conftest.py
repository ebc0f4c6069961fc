"""A real server on a real socket for each test, and clients that use only its public API."""

from __future__ import annotations

import dataclasses
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import argon2
import httpx
import pytest
import trio

from tests.e2e.openapi_check import check_response
from tests.patience import PATIENCE_S, PATIENT
from tests.placement import hold_placement
from trunkline.actors.core.runtime.system import System
from trunkline.actors.core.values.clock import SystemClock
from trunkline.actors.people.accounts import passwords
from trunkline.http.hosting.sockets import bound, url_of
from trunkline.http.processes.serve_door import DoorServer
from trunkline.http.serve import Front, serve
from trunkline.limits.settings import Settings

DOMAINS = "*.example *.example.com"
"""The names that experiences may have as domains."""
EMAIL = "owner@example.com"
PASSWORD = "Correct-horse-7"
TOKEN_TTL_S = 10 * 365 * 86_400
"""How long tokens of these tests live: the clock of a virtual machine may be set by hours while they run."""
ENGINE = os.environ.get("TRUNKLINE_ENGINE", "fast")
"""The engine of the servers of these tests: `TRUNKLINE_ENGINE=stock pytest tests/e2e` selects the other one."""
DOORS = bool(os.environ.get("THROUGH_DOORS"))
"""Whether clients reach these servers through a door: `THROUGH_DOORS=1 pytest tests/e2e` has each request, stream and
connection passed on as between two processes."""
NOT_BY_DOORS = pytest.mark.skipif(
    DOORS, reason="it measures one process, or what doors learn within a second"
)
BOTH_WAYS = frozenset(
    {
        "test_main_job",
        "test_early_leavers",
        "test_experience_streams",
        "test_link",
        "test_mqtt_transports",
        "test_private_files",
        "test_streams",
        "test_webhook_connections",
    }
)
"""The modules whose tests are run both ways in any case."""

UNVERIFIED = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""What all clients share: making a context for each would take a fifth of a call, which rarely uses it."""
UNVERIFIED.check_hostname = False
UNVERIFIED.verify_mode = ssl.CERT_NONE

Json = Any


class MovedClock(SystemClock):
    """The machine's clocks, advanced by `ahead_s`."""

    __slots__ = ("ahead_s",)

    def __init__(self, ahead_s: float) -> None:
        self.ahead_s = ahead_s

    def wall_ms(self) -> int:
        return super().wall_ms() + round(self.ahead_s * 1000)

    def monotonic_s(self) -> float:
        return super().monotonic_s() + self.ahead_s


class Server:
    """A running server: its URL, and its actor system (only to inspect it, never to bypass the API)."""

    def __init__(
        self, url: str, system: System, settings: Settings, stop: Callable[[], Awaitable[None]]
    ) -> None:
        self.url = url
        self.system = system
        self.settings = settings
        self.stop = stop
        self.token = ""
        self.mqtt_ports: list[int] = []

    def move_clock(self, seconds: float) -> None:
        """Advance the server's clocks by `seconds` (set them back if negative)."""
        before = self.system.clock
        ahead_s = before.ahead_s if isinstance(before, MovedClock) else 0.0
        self.system.clock = MovedClock(ahead_s + seconds)

    def client(self, token: str | None = None) -> httpx.AsyncClient:
        """An HTTP client with a token (default: the owner's; "" for none). Each response must be as documented."""
        bearer = self.token if token is None else token
        headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
        hooks = {"response": [check_response]}
        return httpx.AsyncClient(
            base_url=self.url,
            headers=headers,
            timeout=PATIENCE_S,
            trust_env=False,
            verify=UNVERIFIED,
            event_hooks=hooks,
        )

    async def call(
        self,
        method: str,
        path: str,
        body: Json = None,
        *,
        token: str | None = None,
        status: int | None = None,
        **kw: Any,
    ) -> Json:
        """Make a call; asserts `status` if given (otherwise any success) and returns the decoded body."""
        async with self.client(token) as client:
            given = {} if body is None else {"json": body}
            response = await client.request(method, path, **given, **kw)
        if status is None:
            assert response.is_success, (method, path, response.status_code, response.text)
        else:
            assert response.status_code == status, (method, path, response.status_code, response.text)
        return response.json() if response.content else None

    async def log_in(self, email: str = EMAIL, password: str = PASSWORD, **more: Any) -> str:
        """Log in a user and return the token."""
        answer = await self.call(
            "POST", "/auth/user", {"email": email, "password": password, **more}, token=""
        )
        return str(answer["token"])

    async def application(self, name: str = "house") -> str:
        """Create an application and return its path."""
        made = await self.call("POST", "/applications", {"name": name})
        return f"/applications/{made['id']}"

    async def organization(self, name: str = "farm") -> str:
        """Create an organization and return its path."""
        made = await self.call("POST", "/orgs", {"name": name})
        return f"/orgs/{made['id']}"

    async def device(self, application: str, name: str = "pump", **fields: Any) -> str:
        """Create a device with the attributes temp (number), label (string), on (boolean); returns its path."""
        attributes = [
            {"name": "temp", "dataType": "number"},
            {"name": "label", "dataType": "string"},
            {"name": "on", "dataType": "boolean"},
        ]
        made = await self.call(
            "POST", f"{application}/devices", {"name": name, "attributes": attributes, **fields}
        )
        return f"{application}/devices/{made['id']}"

    async def device_token(self, device: str, **key: Any) -> tuple[str, str]:
        """Log in a device with a new access key; returns its token and the path of the key."""
        application, _, device_id = device.rpartition("/devices/")
        made = await self.call("POST", f"{application}/keys", key)
        credentials = {"deviceId": device_id, "key": made["key"], "secret": made["secret"]}
        answer = await self.call("POST", "/auth/device", credentials, token="")
        return str(answer["token"]), f"{application}/keys/{made['id']}"


@asynccontextmanager
async def running_server(data_dir: Path, **settings: Any) -> AsyncIterator[Server]:
    """Serve `data_dir` on 127.0.0.1, port 0, and drain at the end. The owner is logged in.

    `limits` overrides single limits, `clock` replaces the machine's clock, `login` adds fields to the owner's login;
    with `doors`, clients reach it through a door; the rest are settings.
    """
    limits, clock, login = settings.pop("limits", {}), settings.pop("clock", None), settings.pop("login", {})
    doors = settings.pop("doors", DOORS)
    chosen = Settings(
        data_dir=str(data_dir),
        port=0,
        admin_email=EMAIL,
        admin_password=PASSWORD,
        **{
            "engine": ENGINE,
            "log_level": "error",
            "experience_domains": DOMAINS,
            "token_ttl_s": TOKEN_TTL_S,
            **settings,
        },
    )
    chosen = dataclasses.replace(chosen, limits=chosen.limits.override({**PATIENT, **limits}))
    stopping = trio.Event()
    stopped = trio.Event()

    async def stop() -> None:
        stopping.set()
        await stopped.wait()

    async def run(task_status: trio.TaskStatus[Any]) -> None:
        with ExitStack() as held:
            sockets = held.enter_context(bound(chosen)) if doors else None
            front = None if sockets is None else Front(url_of(chosen, sockets.http), sockets.mqtt_ports)
            async with trio.open_nursery() as processes:
                running = await processes.start(
                    partial(serve, chosen, front=front, shutdown=stopping.wait, clock=clock)
                )
                if sockets is not None:
                    await processes.start(DoorServer(chosen, 1).serve, sockets, stopping.wait)
                task_status.started(running)
        stopped.set()

    async with trio.open_nursery() as nursery:
        with trio.fail_after(PATIENCE_S):
            serving = await nursery.start(run)
        hold_placement(serving.dispatcher.system)
        server = Server(serving.url, serving.dispatcher.system, chosen, stop)
        server.mqtt_ports = [port.number for port in serving.mqtt_ports]
        server.token = await server.log_in(**login)
        yield server
        with trio.fail_after(PATIENCE_S):
            await stop()


def hash_with(hasher: argon2.PasswordHasher, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the servers in this process hash passwords with `hasher`."""
    monkeypatch.setattr(passwords, "_hasher", hasher)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "doors" in metafunc.fixturenames and metafunc.module.__name__.rpartition(".")[2] in BOTH_WAYS:
        metafunc.parametrize("doors", [False, True], ids=["direct", "door"], indirect=True)


@pytest.fixture
def doors(request: pytest.FixtureRequest) -> bool:
    """Whether clients reach the servers of a test through a door."""
    return bool(getattr(request, "param", DOORS))


@pytest.fixture
async def server(tmp_path: Path, doors: bool) -> AsyncIterator[Server]:
    """A server with the default throttles and limits. For others use `start_server`."""
    async with running_server(tmp_path / "data", doors=doors) as running:
        yield running


@pytest.fixture
def start_server(tmp_path: Path, doors: bool) -> Callable[..., Any]:
    """`async with start_server(limits={...}, ...)`: a server with other settings, always on the same data directory."""
    return partial(running_server, tmp_path / "data", doors=doors)
