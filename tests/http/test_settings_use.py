"""Every setting has the effect that its description promises, observed from outside the server."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import jwt
import pytest
import trio
from quart_trio import QuartTrio

from tests.actors.house import ManualClock
from tests.e2e.conftest import EMAIL, PASSWORD, Server, running_server
from tests.e2e.server_process import OWNER, serving, started
from trunkline.limits.settings import Settings
from trunkline.store.simulated_disk import WRITES_OF_A_SYNC

MIB = 2**20

SHOWN_HERE = {
    "access_log",
    "admin_email",
    "admin_password",
    "data_dir",
    "disk_writes_per_s",
    "engine",
    "host",
    "hot_rows",
    "limits",
    "log_format",
    "log_level",
    "map_size_bytes",
    "port",
    "sync_delay_ms",
    "throttles",
    "token_ttl_s",
    "trust_forwarded_for",
}
SHOWN_ELSEWHERE = {
    "archive_format": "test_archive_reading.py",
    "archives": "test_archive_reading.py",
    "ca_certs": "test_tls.py",
    "callback_private_networks": "test_job_news.py",
    "blobs": "test_contents_crash.py",
    "blobs_access_key": "test_contents_crash.py",
    "blobs_region": "test_contents_crash.py",
    "blobs_secret_key": "test_contents_crash.py",
    "cluster_address": "test_standby.py",
    "cluster_ca_certs": "test_nats_connection.py",
    "cluster_name": "test_standby.py",
    "cluster_nats": "test_standby.py",
    "cluster_node": "test_standby.py",
    "cluster_password": "test_nats_connection.py",
    "cluster_replicas": "test_standby.py",
    "cluster_seed": "test_nats_connection.py",
    "cluster_silence_ms": "test_standby_lost.py",
    "cluster_url": "test_shared_partitions.py",
    "cluster_user": "test_nats_connection.py",
    "certfile": "test_tls.py",
    "client_certificates": "test_certificate_login.py",
    "codehost_url": "test_codehost.py",
    "cors_origins": "test_cors.py",
    "encryption_keys_file": "test_cli.py",
    "experience_domains": "test_experience_addresses.py",
    "experience_suffix": "test_experience_serving.py",
    "http2_prior_knowledge": "test_http2.py",
    "keyfile": "test_tls.py",
    "mqtt_anonymous_key": "test_mqtt.py",
    "mqtt_port": "test_mqtt.py",
    "mqtt_tls_port": "test_mqtt_transports.py",
    "map_attribution": "test_map_tiles.py",
    "map_tiles": "test_map_tiles.py",
    "metrics_for": "test_metrics_readers.py",
    "processes": "test_processes.py",
    "public_url": "test_job_news.py",
    "s3_endpoint": "test_archive_buckets.py",
    "sendgrid_url": "test_sendgrid.py",
    "smtp_from": "test_job_news.py",
    "smtp_host": "test_job_news.py",
    "smtp_password": "test_job_news.py",
    "smtp_password_file": "test_job_news.py",
    "smtp_port": "test_job_news.py",
    "smtp_tls": "test_job_news.py",
    "smtp_user": "test_job_news.py",
    "sso": "test_single_sign_on.py",
    "store_size_max_bytes": "test_disk_full.py",
    "templates_dir": "test_application_templates.py",
}


def test_every_setting_is_shown_to_have_an_effect(checkout: Path) -> None:
    assert {field.name for field in dataclasses.fields(Settings)} == SHOWN_HERE | SHOWN_ELSEWHERE.keys()
    written = {path.name for path in (checkout / "tests").rglob("test_*.py")}
    assert set(SHOWN_ELSEWHERE.values()) <= written


async def config_file(tmp_path: Path, *lines: str) -> dict[str, str]:
    """The environment of a server that is configured by a file of these lines."""
    file = tmp_path / "trunkline.toml"
    file.write_text("\n".join(lines))
    return {"TRUNKLINE_CONFIG": str(file)}


@pytest.mark.slow
async def test_a_file_sets_everything_and_the_command_line_wins(tmp_path: Path) -> None:
    """data_dir, port, host, admin_email, admin_password, log_format, access_log, throttles."""
    env = await config_file(
        tmp_path,
        f"data_dir = '{tmp_path / 'elsewhere'}'",
        "port = 1",  # --port 0 takes precedence
        "host = '127.0.0.2'",
        f"admin_email = '{EMAIL}'",
        f"admin_password = '{PASSWORD}'",
        "log_format = 'json'",
        "access_log = true",
        "throttles = false",
    )
    async with serving(tmp_path / "data", env=env) as server:
        assert server.url.startswith("http://127.0.0.2:")
        user = (await server.call("GET", "/me"))["id"]
        device = await server.device(await server.application())
        for number in range(40):
            await server.call("POST", f"{device}/state", {"data": {"temp": number}})
        await server.call("GET", "/devices?note=private", status=404)
        assert await server.terminate() == 0
    assert (tmp_path / "data" / "store").is_dir()
    assert not (tmp_path / "elsewhere").exists()
    lines = [json.loads(line) for line in server.log.splitlines()]
    assert {"timestamp", "level", "event"} <= set(lines[0])
    requests = [line for line in lines if line["event"] == "request"]
    states = [line for line in requests if (line["method"], line["path"]) == ("POST", f"{device}/state")]
    assert len(states) == len({line["request_id"] for line in states}) == 40
    assert {(line["status"], line["principal"]) for line in states} == {(200, "user")}
    assert {(line["operation"], line["principal_id"]) for line in states} == {("device.sendState", user)}
    (missing,) = [line for line in requests if line["path"] == "/devices"]
    assert (missing["status"], missing["client"], missing["bytes"] > 0) == (404, "127.0.0.1", True)
    assert all(line["duration_ms"] > 0 for line in requests)
    assert not any(private in server.log for private in (server.token, "private"))
    assert any("throttles are lifted" in line["event"] for line in lines)


@pytest.mark.slow
async def test_the_log_level_keeps_silent_what_is_below_it(tmp_path: Path) -> None:
    env = {**OWNER, "TRUNKLINE_LOG_LEVEL": "warning", "TRUNKLINE_LOG_FORMAT": "json"}
    async with serving(tmp_path / "data", env=env) as server:
        assert await server.terminate() == 0
    # On a busy machine the server may have warned of a long turn.
    assert {json.loads(line)["level"] for line in server.log.splitlines()} <= {"warning"}


@pytest.mark.slow
async def test_an_address_of_version_six(tmp_path: Path) -> None:
    async with started(tmp_path / "data", "--host", "::1") as server:
        if await server.listens():
            assert server.url.startswith("http://[::1]:")
            assert await server.log_in()
        else:  # on a machine that has none
            assert "[::1]:0 cannot be listened on" in server.log


@pytest.mark.parametrize("hot_rows", [True, False])
async def test_hot_rows_are_taken_before_quart_or_not(
    tmp_path: Path, hot_rows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    through_quart: list[str] = []
    handled = QuartTrio.__call__

    async def seen(app: QuartTrio, scope: Any, receive: Any, send: Any) -> None:
        through_quart.append(scope.get("path", "")[-6:])
        await handled(app, scope, receive, send)

    monkeypatch.setattr(QuartTrio, "__call__", seen)
    async with running_server(tmp_path / "data", hot_rows=hot_rows) as server:
        device = await server.device(await server.application())
        await server.call("POST", f"{device}/state", {"data": {"temp": 1}})
        assert ("/state" in through_quart) is not hot_rows


async def test_commits_take_as_much_longer_as_is_set(tmp_path: Path) -> None:
    async with running_server(tmp_path / "data", sync_delay_ms=20) as server:
        before = server.system.journal.statistics
        count, spent_s = before.commits, before.total_commit_s
        device = await server.device(await server.application())
        await server.call("POST", f"{device}/state", {"data": {"temp": 1}})
        after = server.system.journal.statistics
        assert after.commits >= count + 3
        assert after.total_commit_s - spent_s >= 0.020 * (after.commits - count)


async def test_commits_wait_for_the_writes_of_a_simulated_disk(tmp_path: Path) -> None:
    rate = 100
    async with running_server(tmp_path / "data", disk_writes_per_s=rate) as server:
        device = await server.device(await server.application())
        statistics = server.system.journal.statistics
        await server.call("POST", f"{device}/state", {"data": {"temp": 0}})
        count, began_s = statistics.commits, trio.current_time()
        for number in range(4):
            await server.call("POST", f"{device}/state", {"data": {"temp": number}})
        # Each commit waits for the writes of the one before, which are those of a sync at least.
        assert trio.current_time() - began_s >= (statistics.commits - count - 1) * WRITES_OF_A_SYNC / rate > 0


async def test_the_stock_engine_does_the_main_job(tmp_path: Path) -> None:
    async with running_server(tmp_path / "data", engine="stock") as server:
        device = await server.device(await server.application())
        await server.call("POST", f"{device}/state", {"data": {"temp": 1}})
        assert (await server.call("GET", f"{device}/state"))[0]["data"] == {"temp": 1}


async def test_the_limits_are_those_in_force(tmp_path: Path) -> None:
    limits = {"send_state": {"calls": 2, "window_s": 60}}
    async with running_server(tmp_path / "data", limits=limits, clock=ManualClock()) as server:
        device = await server.device(await server.application())
        for number in range(2):
            await server.call("POST", f"{device}/state", {"data": {"temp": number}})
        await server.call("POST", f"{device}/state", {"data": {"temp": 9}}, status=429)


@pytest.mark.parametrize(("ttl_s", "lifetime_s"), [(3600, 3600), (0, None)])
async def test_the_life_of_a_login_token(tmp_path: Path, ttl_s: int, lifetime_s: int | None) -> None:
    async with running_server(tmp_path / "data", token_ttl_s=ttl_s) as server:
        claims = jwt.decode(server.token, options={"verify_signature": False})
        lived = claims["exp"] - claims["iat"] if "exp" in claims else None
        assert lived == lifetime_s


async def failed_logins(server: Server, address: str) -> int:
    """The status of a failed login whose X-Forwarded-For is this address."""
    async with server.client("") as client:
        body = {"email": f"{address}@example.com", "password": "Wrong-horse-1"}
        response = await client.post("/auth/user", json=body, headers={"X-Forwarded-For": address})
    return response.status_code


@pytest.mark.parametrize("trust", [True, False])
async def test_the_word_of_a_proxy_counts_only_where_it_is_trusted(tmp_path: Path, trust: bool) -> None:
    """If the header is trusted, each client has its own limit of failures; otherwise all share one."""
    limits = {"login_per_address": {"calls": 2, "window_s": 60}}
    async with running_server(tmp_path / "data", limits=limits, trust_forwarded_for=trust) as server:
        seen = [await failed_logins(server, f"192.0.2.{number}") for number in range(3)]
    assert seen == ([401, 401, 401] if trust else [401, 401, 429])


async def test_the_map_is_as_large_as_it_is_set(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path / "data", map_size_bytes=3 * MIB) as server,
        server.client("") as client,
    ):
        text = (await client.get("/metrics")).text
    (line,) = [line for line in text.splitlines() if line.startswith("trunkline_store_map_bytes ")]
    assert float(line.split()[1]) == 3 * MIB


def test_the_environment_of_the_tests_configures_nothing() -> None:
    """Or every other test here would be about this machine. The engine may be chosen for a whole run."""
    given = {name for name in os.environ if name.startswith("TRUNKLINE_")}
    assert given <= {"TRUNKLINE_ENGINE"}
