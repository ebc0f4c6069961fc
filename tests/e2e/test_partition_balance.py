"""What the list of partitions tells of the last hour of a running server, and which moves are proposed for it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
import trio

from tests.e2e.conftest import running_server
from tests.e2e.divided import ROOT, SECOND, At, connections, divide, divided, house_in
from tests.e2e.server_process import ServerProcess, one_sentence, processes, serving, trunkline
from tests.e2e.test_partition_figures import by_process, families
from tests.patience import PATIENCE_S
from trunkline.http import control_socket

pytestmark = pytest.mark.slow

LOAD_S = 2.0
STATES = 50
FIRST_MS = 1_600_000_000_000


async def command(data: Path, *arguments: str) -> str:
    done = await trunkline("partition", *arguments, "--data", str(data))
    assert done.returncode == 0, done
    return done.stdout


async def balance(data: Path) -> subprocess.CompletedProcess[str]:
    return await trunkline("partition", "balance", "--data", str(data))


async def load(at: At, *devices: str, seconds: float = LOAD_S) -> int:
    """Send states of these devices in turns for some seconds; return how many."""
    sent = 0
    with trio.fail_after(PATIENCE_S):
        until_s = trio.current_time() + seconds
        while trio.current_time() < until_s:
            for device in devices:
                begin_ms = FIRST_MS + sent
                states = [{"time": begin_ms + number, "data": {"temp": number}} for number in range(STATES)]
                await at.call("POST", f"{device}/state", states)
                sent += STATES
    return sent


async def other_house_in(server: ServerProcess, partition: str, name: str) -> tuple[str, str]:
    """One more application in a partition, and a device of it."""
    house = await house_in(server, partition, name)
    return house.application.rpartition("/")[2], house.device


async def test_moves_are_proposed_for_what_runs(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with divided(data, "--limits", "off") as server, connections(server) as at:
        one, pump = await other_house_in(server, SECOND, "one")
        quiet, _ = await other_house_in(server, ROOT, "quiet")
        sent = await load(at[SECOND][0], pump)
        alone = (await balance(data)).stdout
        assert "trunkline partition move" not in alone
        assert f"Cannot be balanced: application {one}  one: busy " in alone
        assert "Nothing can be moved to any use: partition 1 is still busy for" in alone
        two, fan = await other_house_in(server, SECOND, "two")
        sent += await load(at[SECOND][0], pump, fan, fan)
        listed = await command(data)
        busy = re.findall(
            r"^Partition (\d): \d+ bytes, applications: \d, busy ([\d.]+)% of the last .*since.*, states: (\d+)$",
            listed,
            re.M,
        )
        assert [(number, states) for number, _, states in busy] == [("0", "0"), ("1", str(sent))]
        assert float(busy[1][1]) > 2 * float(busy[0][1])
        shares = dict(re.findall(r"^  \w+  (\w+)  busy ([\d.]+)%, states: \d+$", listed, re.M))
        assert float(shares["one"]) > float(shares["two"]) > 0, "it has sent twice as much"
        assert re.search(rf"^  {quiet}  quiet", listed, re.M)
        done = await balance(data)
        assert done.returncode == 0, done
        moves = re.findall(
            rf"^trunkline partition move (\w+) (\d) --data {re.escape(str(data))}$", done.stdout, re.M
        )
        assert moves in ([(one, "0")], [(two, "0")])
        why = re.search(
            r"  (one|two): busy ([\d.]+)%. Partition 1: ([\d.]+)% before, ([\d.]+)% after; "
            r"partition 0: ([\d.]+)% before, ([\d.]+)% after.",
            done.stdout,
        )
        assert why is not None, done.stdout
        moved, high, less, low, more = map(float, why.groups()[1:])
        assert high - less == pytest.approx(moved, abs=0.25)
        assert more - low == pytest.approx(moved, abs=0.25)
        assert max(less, more) < high
        ratios = by_process((await families(server))["trunkline_loop_busy_ratio"])
        assert 0 <= ratios[ROOT] < ratios[SECOND] <= 1


async def test_a_process_that_does_not_answer_is_told(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with divided(data) as server:
        hanging = processes(server)[SECOND]
        os.kill(hanging, signal.SIGSTOP)
        try:
            listed = (await command(data)).splitlines()
            said = one_sentence(await balance(data))
        finally:
            os.kill(hanging, signal.SIGCONT)
        assert re.search(r"applications: 0, busy [\d.]+% of the last \d+ seconds, since", listed[0])
        assert listed[1].endswith("applications: 0, its process does not answer")
        assert "has partitions whose processes do not answer: partition 1" in said
        nothing = (await balance(data)).stdout
        assert "trunkline partition move" not in nothing
        assert "othing " in nothing  # is worth moving, or can be moved


async def test_without_a_server_it_is_said_what_to_do(tmp_path: Path) -> None:
    await divide(tmp_path / "data")
    said = one_sentence(await balance(tmp_path / "data"))
    assert "is served by no server that answers" in said
    assert "start the server" in said
    listed = await command(tmp_path / "data")
    assert "busy" not in listed
    assert [line.partition(":")[0] for line in listed.splitlines()] == ["Partition 0", "Partition 1"]


async def test_one_partition_has_nothing_to_balance(tmp_path: Path) -> None:
    async with serving(tmp_path / "data") as server:
        done = await balance(tmp_path / "data")
        assert "has one partition: there is nothing to balance" in done.stdout
        assert ", busy " in await command(tmp_path / "data")
        assert await server.terminate() == 0


async def test_a_server_of_an_earlier_version_is_listed_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(control_socket._HANDLERS, "partition.traffic")
    async with running_server(tmp_path / "data", partitions=2):
        assert re.fullmatch(
            r"(Partition \d: \d+ bytes, applications: 0\n){2}", await command(tmp_path / "data")
        )
        assert "is served by no server that answers" in one_sentence(await balance(tmp_path / "data"))


async def test_options_before_the_command_are_refused(tmp_path: Path) -> None:
    said = one_sentence(await trunkline("partition", "--data", str(tmp_path), "balance"))
    assert "trunkline partition balance --data DIR" in said
