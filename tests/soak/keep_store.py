"""Makes the store that is kept of a format: `python -m tests.soak.keep_store [--checkout DIR]`.

A server writes an application with a bit of everything into a new data directory, and `stores/format-N.tar.xz` is
replaced by it. `--checkout` names the checkout of an older version, whose server is used: what it does not know is left
out, and printed.
"""
# ruff: noqa: T201 - a command

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import httpx
import trio

from tests.e2e.conftest import EMAIL, PASSWORD
from tests.e2e.server_process import OWNER, ServerProcess, serving
from tests.patience import PATIENCE_S
from tests.soak.kept_store import Ledger, fill, pack, record, write_keys
from trunkline.store import migrations

OLDER_MAIN: Final = """
import os
del os.environ["TRUNKLINE_EXPERIENCE_DOMAINS"]
from trunkline.http.cli.main import main
main()
"""
"""The command line of an older version, without the settings that it may not know."""


class OlderServer(ServerProcess):
    """Its answers need not be as documented today."""

    def client(self, token: str | None = None) -> httpx.AsyncClient:
        client = super().client(token)
        client.event_hooks = {}
        client.timeout = httpx.Timeout(PATIENCE_S)
        return client


async def keep(folder: Path, checkout: Path | None) -> Path:
    """Fill a store and keep it; returns the path of the archive."""
    env, number = dict(OWNER), migrations.FORMAT
    options: dict[str, Any] = {}
    if checkout is not None:
        (folder / "trunkline").symlink_to(checkout)
        env["PYTHONPATH"] = str(folder)
        done = await trio.run_process(
            [sys.executable, "-c", "from trunkline.store.migrations import FORMAT; print(FORMAT)"],
            env={**os.environ, **env},
            capture_stdout=True,
        )
        number = int(done.stdout)
        options["program"] = ("-c", OLDER_MAIN)
    ledger = Ledger(number, EMAIL, PASSWORD)
    data = folder / "data"
    data.mkdir(mode=0o700)
    write_keys(data)
    async with serving(data, env=env, cold=True, **options) as server:
        if checkout is not None:
            server.__class__ = OlderServer
        path, ledger.bearers, unknown = await fill(server, all_of_it=checkout is None)
        await record(server, path, ledger)
        assert await server.terminate() == 0, server.log
    for each in unknown:
        print(f"left out: {each}")
    print(f"{len(ledger.reads)} reads, {len(ledger.contents)} contents")
    return pack(data, ledger)


def main() -> None:
    """Read the command line and keep a store."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.keep_store", description=__doc__)
    parser.add_argument("--checkout", type=Path)
    given = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="keep-")))
        target = trio.run(keep, folder, given.checkout and given.checkout.resolve())
    print(f"{target}: {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
