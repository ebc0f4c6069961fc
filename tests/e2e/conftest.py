"""A real server on a real socket for each test, and clients that use only its public API."""

from __future__ import annotations

import dataclasses
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import argon2
import httpx
import pytest
import trio

from tests.e2e.openapi_check import check_response
from tests.partitions import make_partitions
from tests.patience import PATIENCE_S, PATIENT
from tests.placement import hold_placement
from trunkline.actors.core.runtime.system import System
from trunkline.actors.core.values.clock import SystemClock
from trunkline.actors.people.accounts import passwords
from trunkline.http.hosting.sockets import bound, url_of
from trunkline.http.processes.serve_door import DoorServer
from trunkline.http.serve import Front, serve
from trunkline.limits.settings import Settings
from trunkline.store.partitions import partition_count

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
PARTITIONS = int(os.environ.get("PARTITIONS", "1"))
"""How many partitions these servers have: with `PARTITIONS=2 pytest tests/e2e` the applications are in the second one,
and clients connect to the process of the first one, so nearly every call is passed on."""
NOT_BY_DOORS = pytest.mark.skipif(
    DOORS, reason="it measures one process, or what doors learn within a second"
)
ONE_PROCESS = frozenset(
    {
        "test_contents",
        "test_early_leavers",
        "test_fair_connections",
        "test_fair_files",
        "test_fair_reads",
        "test_fair_results",
        "test_fair_threads",
        "test_fair_workflows",
        "test_loop_turns",
        "test_mqtt_memory",
        "test_worst_flows",
        "test_worst_inputs",
        "test_application_streams::test_a_reader_that_stops_reading_is_closed_and_counted",
        "test_audit_log::test_a_log_is_bounded_by_its_length_and_its_age",
        "test_backlog::test_a_stopping_server_answers_the_backlogs_that_wait",
        "test_backlog::test_live_states_go_on_while_many_devices_bring_their_backlogs",
        "test_certificates::test_a_store_with_certificates_is_sound",
        "test_dashboards::test_a_user_lists_own_dashboards_and_those_of_own_applications",
        "test_demo_mqtt::test_two_devices_of_the_demo_use_mqtt",
        "test_experience_addresses::test_names_are_unique_in_the_server_until_they_are_released",
        "test_disk_full::test_access_is_ended_at_a_used_up_quota",
        "test_experience_counts::test_requests_are_counted_by_endpoint_status_version_and_host",
        "test_exports::test_a_backup_has_no_results_and_says_so",
        "test_exports::test_a_file_that_the_disk_changed_does_not_arrive_whole",
        "test_exports::test_a_link_expires_and_its_file_is_removed",
        "test_file_contents::test_a_small_file_is_sent_in_one_call",
        "test_file_contents::test_a_refused_upload_stores_nothing",
        "test_file_contents::test_contents_go_with_their_records",
        "test_file_contents::test_the_old_content_is_read_until_the_new_one_is_complete",
        "test_flow_runs::test_the_metrics_count_runs",
        "test_idempotency::test_metrics_count_repetitions_and_forgotten_keys",
        "test_integration_places::test_so_many_integrations_of_an_application_are_enabled",
        "test_long_lists::test_the_first_page_reads_as_much_of_a_long_list_as_of_a_short_one",
        "test_mandates::test_what_comes_from_elsewhere_acts_for_who_brought_it",
        "test_overview::test_a_count_is_kept_for_a_second_and_shared",
        "test_overview::test_the_application_that_was_counted_for_longest_makes_room",
        "test_reports::test_nothing_is_left_of_a_deleted_user",
        "test_scheduled_reports::test_a_dashboard_takes_its_schedule_to_another_owner",
    }
)
"""Modules and tests that look into a process or its directory, measure one, or count what is bounded in each. They are
left out where their servers have several partitions."""
BY_DOORS = frozenset(
    {
        "test_main_job",
        "test_early_leavers",
        "test_experience_streams",
        "test_link",
        "test_mqtt_transports",
        "test_files",
        "test_streams",
        "test_webhook_connections",
    }
)
"""The modules whose tests are run through a door as well in any case."""
IN_PARTITIONS = frozenset(
    {
        "test_account",
        "test_application_health",
        "test_applications",
        "test_certificate_login",
        "test_clones",
        "test_dashboards",
        "test_dashboard_data",
        "test_experience_streams",
        "test_files",
        "test_main_job",
        "test_mandates",
        "test_mqtt_transports",
        "test_organizations",
        "test_streams",
        "test_webhooks",
    }
)
"""The modules whose tests are run with two partitions as well."""

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
    """A running server: its URL, and its actor system (only to inspect it, never to bypass the API).

    Of a server with several partitions that of the last one, where the first application is.
    """

    def __init__(
        self, url: str, system: System, settings: Settings, stop: Callable[[], Awaitable[None]]
    ) -> None:
        self.url = url
        self.system = system
        self.settings = settings
        self.stop = stop
        self.token = ""
        self.mqtt_ports: list[int] = []
        self.systems = [system]
        """The actor systems of all partitions."""

    @property
    def root(self) -> System:
        """The actor system that has the users."""
        return self.systems[0]

    def move_clock(self, seconds: float) -> None:
        """Advance the server's clocks by `seconds` (set them back if negative)."""
        before = self.system.clock
        ahead_s = before.ahead_s if isinstance(before, MovedClock) else 0.0
        for system in self.systems:
            system.clock = MovedClock(ahead_s + seconds)

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
    doors, partitions = settings.pop("doors", DOORS), settings.pop("partitions", PARTITIONS)
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
    if partitions > 1 and partition_count(data_dir) == 1:
        make_partitions(data_dir, partitions)
    stopping = trio.Event()
    stopped = trio.Event()

    async def stop() -> None:
        stopping.set()
        await stopped.wait()

    async def run(task_status: trio.TaskStatus[Any]) -> None:
        with ExitStack() as held:
            front, sockets = None, None
            if doors or partitions > 1:
                sockets = held.enter_context(bound(chosen))
                front = Front(url_of(chosen, sockets.http), sockets.mqtt_ports)
            async with trio.open_nursery() as processes:
                served = partial(serve, chosen, shutdown=stopping.wait, clock=clock)
                root = front if doors or front is None else front._replace(sockets=sockets)
                running = [await processes.start(partial(served, front=root))]
                for number in range(1, partitions):
                    assert front is not None
                    more = partial(served, front=front._replace(partition=number))
                    running.append(await processes.start(more))
                if doors:
                    assert sockets is not None
                    await processes.start(DoorServer(chosen, 1).serve, sockets, stopping.wait)
                task_status.started(running)
        stopped.set()

    async with trio.open_nursery() as nursery:
        with trio.fail_after(PATIENCE_S):
            all_serving = await nursery.start(run)
            for each in all_serving:
                await each.connected()
        serving = all_serving[0]
        server = Server(serving.url, all_serving[-1].dispatcher.system, chosen, stop)
        server.systems = [each.dispatcher.system for each in all_serving]
        for system in server.systems:
            hold_placement(system)
        server.mqtt_ports = [port.number for port in serving.mqtt_ports]
        server.token = await server.log_in(**login)
        yield server
        with trio.fail_after(PATIENCE_S):
            await stop()


def hash_with(hasher: argon2.PasswordHasher, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the servers in this process hash passwords with `hasher`."""
    monkeypatch.setattr(passwords, "_hasher", hasher)


class Layout(NamedTuple):
    """How clients reach the servers of a test, and what is behind."""

    doors: bool = DOORS
    partitions: int = PARTITIONS


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    module = metafunc.module.__name__.rpartition(".")[2]
    ways = {"direct": Layout()}
    if module in BY_DOORS:
        ways["door"] = Layout(doors=True)
    if module in IN_PARTITIONS:
        ways["partitions"] = Layout(partitions=2)
    if "layout" in metafunc.fixturenames and len(ways) > 1:
        metafunc.parametrize("layout", ways.values(), ids=ways.keys(), indirect=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    skipped = pytest.mark.skip(reason="it looks into one process, or measures one")
    for item in items:
        assert isinstance(item, pytest.Function)
        module = item.module.__name__.rpartition(".")[2]
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        given = cast("Layout", parameters.get("layout", Layout()))
        if given.partitions > 1 and not ONE_PROCESS.isdisjoint({module, f"{module}::{item.originalname}"}):
            item.add_marker(skipped)


@pytest.fixture
def layout(request: pytest.FixtureRequest) -> Layout:
    """How clients reach the servers of a test."""
    return getattr(request, "param", Layout())


@pytest.fixture
async def server(tmp_path: Path, layout: Layout) -> AsyncIterator[Server]:
    """A server with the default throttles and limits. For others use `start_server`."""
    async with running_server(tmp_path / "data", **layout._asdict()) as running:
        yield running


@pytest.fixture
def start_server(tmp_path: Path, layout: Layout) -> Callable[..., Any]:
    """`async with start_server(limits={...}, ...)`: a server with other settings, always on the same data directory."""
    return partial(running_server, tmp_path / "data", **layout._asdict())
