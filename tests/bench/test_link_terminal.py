"""`trunkline link`: what is typed becomes a state, and commands are shown and acknowledged."""

from __future__ import annotations

from pathlib import Path
from queue import Queue

import pytest
import trio

from tests.e2e.link_house import House, house_in
from tests.e2e.server_process import trunkline
from tests.patience import PATIENCE_S
from trunkline.bench.link_terminal import run_terminal, state_of_line
from trunkline.bench.session import Session


def test_words_are_values_by_name() -> None:
    line = """temp=21.5 on=true off=false n=-3 label="on the roof" empty= x=null y=[1] z=a=b"""
    assert state_of_line(line) == {
        "temp": 21.5,
        "on": True,
        "off": False,
        "n": -3,
        "label": "on the roof",
        "empty": "",
        "x": "null",
        "y": "[1]",
        "z": "a=b",
    }
    assert state_of_line(" \n") == {}
    for wrong in ("temp", "=5", 'label="open'):
        with pytest.raises(ValueError, match=r"NAME=VALUE|cannot be read"):
            state_of_line(wrong)


def ids_of(house: House) -> tuple[str, str]:
    _, _, application, _, device = house.device.split("/")
    return application, device


async def test_commands_are_shown_and_lines_are_sent(tmp_path: Path) -> None:
    said: list[str] = []
    lines: Queue[str] = Queue()
    async with house_in(tmp_path / "data") as house, trio.open_nursery() as nursery:
        session = Session(house.server.url, token=house.token)

        async def saying(text: str) -> None:
            while not any(text in line for line in said):
                await trio.lowlevel.checkpoint()

        with trio.fail_after(PATIENCE_S):
            nursery.start_soon(run_terminal, session, *ids_of(house), said.append, lines.get)
            await saying("connected")
            await house.server.call(
                "POST", f"{house.device}/command", {"name": "setTarget", "payload": {"value": 27}}
            )
            await saying('setTarget {"value":27} (acknowledged)')
            for line in ("temp=1 on=true", "temp", "none=2", "temp=3"):
                lines.put(f"{line}\n")
            await saying("frame 2 is refused: Validation: ")
            await saying("stored up to frame 3")
            await saying("NAME=VALUE")
            assert [state["data"] for state in await house.states()] == [{"temp": 1, "on": True}, {"temp": 3}]
            lines.put("")


@pytest.mark.slow
async def test_the_command_ends_with_its_input(tmp_path: Path) -> None:
    async with house_in(tmp_path / "data") as house:
        place = (*ids_of(house), "--url", house.server.url)
        done = await trunkline("link", *place, "--token", house.token, stdin=b"temp=4\ntemp=5\n", cold=True)
        assert (done.returncode, done.stderr) == (0, "")
        assert {"connected", "frame 1: temp=4", "stored up to frame 2"} <= set(done.stdout.splitlines())
        assert await house.values() == [4, 5]
        refused = await trunkline("link", *place, "--token", "x", stdin=b"temp=6\n")
        assert refused.returncode == 2
        assert "401" in refused.stderr
