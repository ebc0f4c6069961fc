"""`serve --demo` shows a newcomer something at once, and the lines that it prints work as they stand."""

from __future__ import annotations

import json
import re
import shlex
import time
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.e2e.mqtt_client import mqtt_client
from tests.e2e.server_process import OWNER, ServerProcess, started, trunkline
from tests.e2e.shells import SHELLS, pasted, path_with_curl, with_owner
from tests.patience import PATIENCE_S
from tests.ports import taken_port
from trunkline.actors.core.values.clock import SystemClock
from trunkline.bench.demo import PUBLISHED
from trunkline.bench.demo_plant import LOW_BATTERY
from trunkline.http.cli.demo import MQTT_PORT, DemoClock, demo_mqtt_port
from trunkline.http.mqtt import packets
from trunkline.http.mqtt.packets import V3_1_1
from trunkline.limits.settings import Settings

pytestmark = pytest.mark.slow

LINE = re.compile(r"^  (export .*|curl .*)$", re.MULTILINE)


async def demo_lines(server: ServerProcess) -> list[str]:
    """The lines that the demo prints to be tried."""
    await server.prints(r"The token is valid for a day")
    return [found[1] for found in LINE.finditer(server.printed)]


async def test_the_printed_lines_work_as_they_stand(tmp_path: Path) -> None:
    """On the first start, and on a later one that knows nobody's password."""
    path = path_with_curl(tmp_path)
    for start in range(2):
        async with started(tmp_path / "data", "--demo", env={}) as server:
            export, *calls = await demo_lines(server)
            assert export.startswith("export TOKEN=")
            assert len(calls) == 3
            read, command, watch = calls
            (state,) = json.loads(await pasted([export, read], path))
            assert state["data"]
            assert json.loads(await pasted([export, command], path)) == {"success": True}
            assert b"event: deviceState" in await pasted([export, watch], path, until=b"deviceState")
            assert ("First user" in server.printed) == (start == 0)
            console, person, *_ = server.printed.splitlines()
            assert await server.listens()
            assert console == f"The console: {server.url}/console"
            assert person.startswith("First user: " if start == 0 else "Log in as admin@localhost ")
            assert await server.terminate() == 0
            assert "Traceback" not in server.log


def readme_calls(checkout: Path, url: str) -> list[str]:
    """The lines of the README that are to be pasted, for this server and its owner."""
    section = (checkout / "README.md").read_text("utf-8").partition("\n## Three calls to try\n")[2]
    lines = "".join(re.findall(r"^```console\n(.*?)^```$", section.partition("\n## ")[0], re.M | re.S))
    return with_owner(lines, url).splitlines()


async def test_the_calls_of_the_readme_work_in_every_shell(tmp_path: Path, checkout: Path) -> None:
    """Also when the demo is not the first application of the user, and in zsh, which expands a bare `?`."""
    path = path_with_curl(tmp_path)
    async with started(tmp_path / "data", "--demo") as server:
        await demo_lines(server)
        assert await server.listens()
        server.token = await server.log_in()
        await server.call("POST", "/applications", {"name": "A house of one's own"})
        *calls, watch = readme_calls(checkout, server.url)
        for shell in SHELLS:
            state, answer = (await pasted(calls, path, shell_name=shell)).split(b"]", 1)
            assert json.loads(state + b"]")[0]["data"]["target"], shell
            assert json.loads(answer) == {"success": True}, shell
            shown = await pasted([*calls, watch], path, until=b"deviceState", shell_name=shell)
            assert b"event: deviceState" in shown, shell


async def test_the_printed_token_is_for_devices_only(tmp_path: Path) -> None:
    async with started(tmp_path / "data", "--demo") as server:
        export, *_ = await demo_lines(server)
        assert await server.listens()
        token = export.removeprefix("export TOKEN=")
        await server.call("GET", "/me", token=token, status=403)
        await server.call("POST", "/applications", {"name": "mine"}, token=token, status=403)


async def topics_shown(line: str, most: int) -> set[str]:
    """The topics of the first messages that a client gets which was started by this line; each has a state."""
    command, *given = shlex.split(line)
    assert (command, given.pop()) == ("mosquitto_sub", "-v")
    options = dict(zip(given[::2], given[1::2], strict=True))
    assert sorted(options) == ["-P", "-h", "-p", "-t", "-u"]
    topics: set[str] = set()
    async with mqtt_client(int(options["-p"]), V3_1_1) as client:
        answer = await client.connect("", username=options["-u"], password=options["-P"].encode())
        assert (options["-h"], answer.code) == ("127.0.0.1", packets.SUCCESS)
        await client.subscribe(options["-t"])
        with trio.fail_after(PATIENCE_S):
            while len(topics) < most:
                message = await client.expect(packets.Publish)
                assert ("temperature" if "freezer" in message.topic else "speed") in json.loads(
                    message.payload
                )
                topics.add(message.topic)
    return topics


async def subscribe_line(server: ServerProcess) -> str:
    return (await server.prints(r"\n  (mosquitto_sub .*)\n"))[1]


async def test_the_printed_line_for_mqtt_shows_messages_until_the_next_start(tmp_path: Path) -> None:
    lines = []
    for start in range(2):
        async with started(tmp_path / "data", "--demo", "--mqtt-port", "0") as server:
            lines.append(await subscribe_line(server))
            port = (await server.prints(r"MQTT: 127\.0\.0\.1 port (\d+)\n"))[1]
            assert f" -p {port} " in lines[-1]
            assert await topics_shown(lines[-1], 2) == {f"plant/{name}" for name in PUBLISHED}
            if start:
                key, secret = shlex.split(lines[0])[6::2][:2]
                async with mqtt_client(int(port)) as client:
                    answer = await client.connect("", username=key, password=secret.encode())
                    assert answer.code == packets.BAD_USER_NAME_OR_PASSWORD
            assert await server.terminate() == 0
            assert "Traceback" not in server.log


async def test_the_demo_opens_the_usual_port_for_mqtt_if_it_is_free(tmp_path: Path) -> None:
    with taken_port() as holder:
        number = holder.getsockname()[1]
        change = f"from trunkline.http.cli import demo, main; demo.MQTT_PORT = {number}; main.main()"
        begin = partial(started, tmp_path / "data", "--demo", program=("-c", change), cold=True)
        async with begin() as server:
            assert f" -p {number} " in await subscribe_line(server)
            assert await server.terminate() == 0
        holder.listen()
        async with begin() as server:
            await server.prints(f"No MQTT: port {number} is in use. Choose another one with --mqtt-port.")
            await demo_lines(server)
            assert "mosquitto_sub" not in server.printed
            assert await server.terminate() == 0


@pytest.mark.parametrize(
    "chosen",
    [{"mqtt_port": 0}, {"port": MQTT_PORT}, {"certfile": "a.pem", "keyfile": "a.key"}, {"engine": "stock"}],
)
def test_the_demo_opens_no_port_for_mqtt_beside_a_chosen_one_or_tls(chosen: dict[str, Any]) -> None:
    assert demo_mqtt_port(Settings()) == MQTT_PORT
    assert demo_mqtt_port(Settings(**chosen)) is None


async def test_the_clock_of_the_demo_goes_back_and_what_has_passed_never_becomes_less() -> None:
    clock, real = DemoClock(), SystemClock()

    def ahead_s() -> tuple[int, int]:
        wall_s = (clock.wall_ms() - real.wall_ms()) / 1000
        return round(wall_s), round(clock.monotonic_s() - real.monotonic_s())

    assert ahead_s() == (0, 0)
    clock.move_to(time.time() - 1000)
    assert ahead_s() == (-1000, 0)
    clock.move_to(time.time() - 400)
    assert ahead_s() == (-400, 600)
    clock.move_to(time.time())
    assert ahead_s() == (0, 1000)
    at_s = int(time.time()) - 1000
    for _ in range(5000):  # in every part of a millisecond
        clock.move_to(at_s)
        assert clock.wall_ms() >= 1000 * at_s, "what happens at a time of the past has it, not one before"


async def test_a_directory_that_is_in_use_gets_a_demo_without_a_past(tmp_path: Path) -> None:
    """Its clock is not set back."""
    async with started(tmp_path / "data") as server:
        assert await server.listens()
        assert await server.terminate() == 0
    async with started(tmp_path / "data", "--demo") as server:
        await demo_lines(server)
        assert await server.listens()
        server.token = await server.log_in()
        (application,) = (await server.call("GET", "/applications"))["items"]
        assert abs(datetime.fromisoformat(application["creationDate"]).timestamp() - time.time()) < 3600
        alarms: list[Any] = []
        with trio.fail_after(PATIENCE_S):
            while not alarms:  # the next report of the device opens it
                alarms = (await server.call("GET", f"/applications/{application['id']}/alarms"))["items"]
        assert [alarm["deviceName"] for alarm in alarms] == [LOW_BATTERY]
        assert await server.terminate() == 0
        assert "Traceback" not in server.log


async def test_the_demo_outlives_a_new_password_and_its_application(tmp_path: Path) -> None:
    async with started(tmp_path / "data", "--demo") as server:
        await demo_lines(server)
        assert await server.listens()
        new = "Another-horse-8"
        changed = await trunkline(
            "user",
            "passwd",
            OWNER["TRUNKLINE_ADMIN_EMAIL"],
            "--password",
            new,
            "--data",
            str(tmp_path / "data"),
        )
        assert changed.returncode == 0, changed.stderr
        server.token = await server.log_in(password=new)
        (application,) = (await server.call("GET", "/applications"))["items"]
        place = f"/applications/{application['id']}"
        before = (await server.call("GET", f"{place}/payloadCounts"))["deviceState"]["total"]
        with trio.fail_after(PATIENCE_S):
            while (await server.call("GET", f"{place}/payloadCounts"))["deviceState"]["total"] < before + 48:
                await trio.lowlevel.checkpoint()
        await server.call("DELETE", place)
        await server.prints("All devices of the demo are deleted")
        await server.call("GET", "/readyz", token="")
        assert await server.terminate() == 0
