"""The clients of `docs/reference/mqtt.md` as they stand there, against a real server: each stores its state and gets a
command."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from tests.e2e.mqtt_house import House, house
from tests.patience import PATIENCE_S

__all__ = ["house"]  # the fixture

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "mqtt.md"


def example(language: str) -> str:
    """The first block of a language on the page."""
    found = re.search(rf"```{language}\n(.*?)```", PAGE.read_text().partition("\n## Clients\n")[2], re.DOTALL)
    assert found is not None
    return found[1]


def facts(house: House) -> dict[str, str]:
    return {"HOST": "127.0.0.1", "DEVICE_ID": house.id, "KEY": house.key, "SECRET": house.secret}


async def lives(house: House, command: list[str]) -> None:
    """Run a client until it has stored its state and printed a command."""
    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            process = await nursery.start(_start, command)
            while await house.states() != [{"temp": 21.5}]:
                await trio.lowlevel.checkpoint()
            await house.server.call("POST", f"{house.device}/command", {"name": "tare", "ttlSeconds": 60})
            printed = b""
            while b"tare" not in printed:
                piece = await process.stdout.receive_some()
                assert piece, printed
                printed += piece
            nursery.cancel_scope.cancel()


async def _start(command: list[str], task_status: trio.TaskStatus[trio.Process]) -> None:
    await trio.run_process(command, stdout=subprocess.PIPE, task_status=task_status)


async def test_the_client_in_python(house: House, tmp_path: Path) -> None:
    names = "".join(f"{name} = {value!r}\n" for name, value in facts(house).items())
    port = str(house.server.mqtt_ports[0])
    # It ends after its state; a device goes on.
    source = names + example("python").replace("1883", port) + "import threading; threading.Event().wait()\n"
    program = tmp_path / "client.py"
    program.write_text(source)
    await lives(house, [sys.executable, "-u", str(program)])


def compiles() -> bool:
    """Whether a program in C with libmosquitto can be built here."""
    if shutil.which("cc") is None:
        return False
    source = b"#include <mosquitto.h>\n"
    return subprocess.run(["cc", "-E", "-"], input=source, check=False, capture_output=True).returncode == 0


async def test_the_client_in_c(house: House, tmp_path: Path) -> None:
    if not compiles():
        pytest.skip("there is no C compiler, or libmosquitto-dev is not installed")
    source = example("c").replace("1883", str(house.server.mqtt_ports[0]))
    for name, value in facts(house).items():
        source = source.replace(f'#define {name} "..."', f'#define {name} "{value}"')
    program = tmp_path / "scale"
    (tmp_path / "scale.c").write_text(source)
    await trio.run_process(
        ["cc", "-Wall", "-Werror", "-o", str(program), str(tmp_path / "scale.c"), "-lmosquitto"]
    )
    await lives(house, [str(program)])


async def test_the_commands_of_a_shell(house: House) -> None:
    if shutil.which("mosquitto_pub") is None:
        pytest.skip("mosquitto_pub is not installed; it is in the package mosquitto-clients")
    script = example("sh").partition("\n")[2].replace("1883", str(house.server.mqtt_ports[0]))
    for name, value in facts(house).items():
        script = re.sub(rf"\b{name}\b", value, script)
    with trio.fail_after(PATIENCE_S):
        await trio.run_process(["sh", "-c", script])
    assert await house.states() == [{"temp": 21.5}]
