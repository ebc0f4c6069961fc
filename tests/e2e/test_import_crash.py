"""kill -9 while a bundle is imported: it goes on and makes everything once, or leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from tests.e2e.server_process import OWNER, serving, trunkline
from tests.e2e.test_crash import FAULTY
from tests.e2e.test_exports import ended
from tests.e2e.test_imports import bundle_of, old, send
from tests.patience import PATIENCE_S
from trunkline.store import keys
from trunkline.store.env import Store

pytestmark = pytest.mark.disk

DEVICES = 200
BUNDLE = bundle_of(
    {
        "DataTable": [{"id": old(1), "body": {"name": "t"}}],
        "Device": [{"id": old(1000 + n), "body": {"name": f"d{n}"}} for n in range(DEVICES)],
        "Dashboard": [{"id": old(2), "body": {"name": "d", "description": f"of {old(1000)}"}}],
    }
)
KILLS = (2, 3, 4)
"""How many groups of turns are done before each kill."""


async def killed(data_dir: Path, limits: tuple[str, ...], *, also_into: bool) -> tuple[str, str] | None:
    """Import as a new application, and with `also_into` into another one, and kill the server three times meanwhile.

    Returns the path and the job of the other application.
    """
    started, other = False, None
    for steps in KILLS:
        env = {**OWNER, "CRASH_HELD_PARTS": str(steps)}
        async with serving(data_dir, *limits, program=FAULTY, env=env) as server:
            if not started:
                paths = ["/applications", *([await server.application()] if also_into else [])]
                for path in paths:
                    response = await send(server, path, BUNDLE, options={"forceJob": True})
                    assert response.status_code == 202, response.text
                started = True
                other = (paths[1], response.json()["jobId"]) if also_into else None
            await server.prints("the creation is held")
            assert (await server.call("GET", "/applications"))["totalCount"] == int(also_into)
            await server.kill()
    return other


def stored(data_dir: Path) -> dict[str, int]:
    """The numbers of records by kind, and of notes about applications that are being built."""
    with Store.open(data_dir) as store, store.snapshot() as snapshot:
        found = {
            kind: sum(1 for _ in snapshot.keys(keys.RECORDS, prefix, keys.prefix_end(prefix)))
            for kind in ("application", "device", "dataTable", "dashboard")
            for prefix in (keys.kind_prefix(kind),)
        }
        built = snapshot.keys(keys.META, keys.BUILDING_PREFIX, keys.prefix_end(keys.BUILDING_PREFIX))
        return {**found, "built": sum(1 for _ in built)}


@pytest.mark.slow
async def test_imports_go_on_after_kills_and_make_everything_once(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    limits = limits_of(tmp_path, job_attempts_max=9)
    other = await killed(data_dir, limits, also_into=True)
    assert other is not None
    async with serving(data_dir, *limits) as server:
        log = await ended(server, *other)
        assert log["status"] == "completed", log
        with trio.fail_after(PATIENCE_S):
            while (await server.call("GET", "/applications"))["totalCount"] < 2:
                await trio.lowlevel.checkpoint()
        for each in (await server.call("GET", "/applications"))["items"]:
            devices = await server.call("GET", f"/applications/{each['id']}/devices", params={"perPage": 1})
            assert devices["totalCount"] == DEVICES
        assert await server.terminate() == 0
    assert stored(data_dir) == {
        "application": 2,
        "device": 2 * DEVICES,
        "dataTable": 2,
        "dashboard": 2,
        "built": 0,
    }
    done = await trunkline("check", "--data", str(data_dir))
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
async def test_an_import_that_is_given_up_leaves_nothing_behind(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    limits = limits_of(tmp_path, job_attempts_max=3, purge_interval_s=0.05, purge_pause_s=0.001)
    await killed(data_dir, limits, also_into=False)
    async with serving(data_dir, *limits) as server:
        with trio.fail_after(PATIENCE_S):
            while [path for path in (data_dir / "results").iterdir() if len(path.name) == 48]:
                await server.call("GET", "/applications")
        assert await server.terminate() == 0
    with trio.fail_after(PATIENCE_S):  # what was built is removed after the job has ended
        while any(stored(data_dir).values()):
            async with serving(data_dir, *limits) as server:
                assert await server.terminate() == 0


def limits_of(tmp_path: Path, **limits: float) -> tuple[str, str]:
    """The options for a server with these limits."""
    file = tmp_path / "limits.toml"
    file.write_text("\n".join(f"{name} = {value}" for name, value in limits.items()))
    return "--limits", str(file)
