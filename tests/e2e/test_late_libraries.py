"""What a server imports only when it has a use for it: seen by the libraries that its process has mapped."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.server_process import ServerProcess, started

pytestmark = pytest.mark.slow


def has_arrays(server: ServerProcess) -> bool:
    return "_multiarray_umath" in Path(f"/proc/{server.process.pid}/maps").read_text()


async def test_arrays_are_loaded_for_the_first_application(tmp_path: Path) -> None:
    """By the call that creates it, before its answer, and from then on at each start: no call of a device waits."""
    async with started(tmp_path / "data", cold=True) as server:
        assert await server.listens()
        server.token = await server.log_in()
        assert not has_arrays(server)
        await server.call("POST", "/applications", {"name": "first"}, status=201)
        assert has_arrays(server)
        assert await server.terminate() == 0
    async with started(tmp_path / "data", cold=True) as server:
        assert await server.listens()
        assert has_arrays(server)
