"""The cases of the public conformance suite for WebSocket servers (Autobahn), where a program that runs them is found.

    pip install kosoku && pytest -m load tests/http/wire/test_websocket_suite.py

Not run are those of compression (12 and 13), which the server does not offer.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import trio

from tests.http.raw_wire import application, serving
from tests.http.wire.websocket_sessions import BOUNDS, Accepting


@pytest.mark.load
@pytest.mark.timeout(900)
async def test_the_public_suite(tmp_path: Path) -> None:
    runner = shutil.which("kosoku")
    if runner is None:
        pytest.skip("kosoku is not installed")
    accepting = Accepting(BOUNDS._replace(message_bytes_max=1 << 26, unsent_bytes_max=1 << 28))
    async with serving(application(accepting)) as wired:
        done = await trio.run_process(
            [runner, "-x", "12.*", "-x", "13.*", "-o", str(tmp_path), f"ws://127.0.0.1:{wired.port}"],
            capture_stdout=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout.decode()
    assert b"301 cases passed" in done.stdout
