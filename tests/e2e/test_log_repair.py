"""A log that is lost or broken: an operator begins a new one, and the machines go on with it."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from tests.e2e.machines import Machines, copied, machines_in, made, report, states

pytestmark = [pytest.mark.slow]


@pytest.fixture
async def machines(tmp_path: Path) -> AsyncIterator[Machines]:
    async with machines_in(tmp_path, silence_ms=60_000) as found:
        yield found


async def commanded(machines: Machines, name: str, *arguments: str) -> tuple[int, str]:
    """The exit code of `trunkline cluster` on a machine, and what it says."""
    done = await machines.command(name, "cluster", *arguments)
    return done.returncode, done.stdout + done.stderr


async def test_a_log_is_made_again_and_the_other_machine_gets_a_copy(machines: Machines) -> None:
    async with machines.serving("a") as one:
        _, device = await made(one)
        await report(one, device, 1)
        machines.copy_secrets("a", "b")
        async with machines.standing_by("b", one) as two:
            await report(two, device, 2)
            assert await two.terminate() == 0
        await report(one, device, 3)
        assert "is in use by process" in (await commanded(machines, "a", "new-log", "--yes"))[1]
        assert await one.terminate() == 0
    await machines.nats.kill()
    code, said = await commanded(machines, "a", "new-log")
    assert code == 1
    assert "of epoch 1, in which a served" in said
    assert f"trunkline: There is no connection to the log: {machines.nats.address}: " in said
    assert "repeat the command with --yes" not in said
    shutil.rmtree(machines.folder / "nats" / "a")
    async with trio.open_nursery() as nursery:
        await machines.nats.start(nursery)
        assert "`trunkline cluster new-log` does" in await machines.refused("a")

        code, said = await commanded(machines, "a", "new-log")
        assert code == 0
        assert "The log tl-trunkline-0: It does not exist." in said
        assert "of epoch 1, in which a served" in said
        assert "Nothing was done" in said
        assert "does not exist" in await machines.refused("a")
        code, said = await commanded(machines, "b", "rejoin")
        assert code == 1
        assert "no machine is heard that serves the data" in said

        code, said = await commanded(machines, "a", "new-log", "--yes")
        assert code == 0, said
        async with machines.serving("a") as one:
            one.token = await one.log_in()
            assert await states(one, device) == [1, 2, 3]
            code, said = await commanded(machines, "b", "new-log", "--yes")
            assert code == 1
            assert "is refused while machines run: a;" in said
            assert "The log was made again" in await machines.refused("b")
            code, said = await commanded(machines, "b", "new-log")
            assert "has a log before the present one (" in said
            code, said = await commanded(machines, "b", "rejoin")
            assert code == 0, said
            assert (machines.folder / "b" / "backups" / "before-rejoin" / "store" / "data.mdb").exists()
            async with machines.standing_by("b", one) as two:
                await report(two, device, 4)
                await copied(two)
                await report(two, device, 5)
                assert await one.terminate() == 0
                assert await two.listens()
                assert await states(two, device) == [1, 2, 3, 4, 5]
                assert await two.terminate() == 0
        nursery.cancel_scope.cancel()


async def test_a_backup_is_restored_into_a_server_with_a_log(machines: Machines) -> None:
    async with machines.serving("a") as one:
        _, device = await made(one)
        await report(one, device, 1)
        copy = machines.folder / "copy"
        done = await machines.command("a", "backup", str(copy))
        assert done.returncode == 0, done.stderr
        await report(one, device, 2)
        assert await one.terminate() == 0
    shutil.rmtree(machines.folder / "a")
    copy.rename(machines.folder / "a")
    code, said = await commanded(machines, "a", "new-log", "--yes")
    assert code == 0, said
    async with machines.serving("a") as one:
        assert await states(one, device) == [1]
        await report(one, device, 3)
        assert await states(one, device) == [1, 3]
        assert await one.terminate() == 0


async def test_no_log_is_begun_without_the_data_that_a_machine_had(machines: Machines) -> None:
    async with machines.serving("a") as one:
        await made(one)
        assert await one.terminate() == 0
    await machines.nats.kill()
    shutil.rmtree(machines.folder / "nats" / "a")
    (machines.folder / "a" / "store").rename(machines.folder / "unmounted")
    async with trio.open_nursery() as nursery:
        await machines.nats.start(nursery)
        assert "a has had data, and " in await machines.refused("a")
        (machines.folder / "unmounted").rename(machines.folder / "a" / "store")
        assert "`trunkline cluster new-log` does" in await machines.refused("a")
        nursery.cancel_scope.cancel()
