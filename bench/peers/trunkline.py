"""Trunkline itself, with either engine and without its hot rows: started like the others, by its own command."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from trunkline.bench.fleet import Fleet
from trunkline.bench.ledger import Audit
from trunkline.bench.peers.peer import Kept, Peer, Started
from trunkline.bench.peers.programs import Place, free_port
from trunkline.bench.progress import Bar
from trunkline.bench.session import Session

_EMAIL = "bench@localhost"
_MAIN = "from trunkline.http.cli import main; main()"


class Trunkline(Peer):
    """The server of this project, with its throttles lifted."""

    name = "Trunkline"
    engine = "fast"
    hot_rows = True

    @asynccontextmanager
    async def run(self, work: Path, place: Place, devices: int, bar: Bar) -> AsyncIterator[Started]:
        password, port = f"Bench-{secrets.token_hex(12)}", free_port()
        inherited = {name: text for name, text in os.environ.items() if not name.startswith("TRUNKLINE_")}
        place.start(
            [
                *(sys.executable, "-c", _MAIN, "serve", "--data", str(place.directory / "store")),
                *("--port", str(port), "--limits", "off"),
            ],
            env={
                **inherited,
                "TRUNKLINE_ADMIN_EMAIL": _EMAIL,
                "TRUNKLINE_ADMIN_PASSWORD": password,
                "TRUNKLINE_ENGINE": self.engine,
                "TRUNKLINE_HOT_ROWS": str(self.hot_rows),
            },
        )
        await place.listens(port)
        session = Session(f"http://127.0.0.1:{port}")
        await session.login(_EMAIL, password)
        fleet = await Fleet.create(session, bar, "peers", devices)

        async def kept() -> Kept:
            found = Audit()
            await fleet.audit(session, found, bar)
            return Kept(found.acknowledged, found.acknowledged - found.missing - found.different)

        try:
            yield Started(
                version=f"{self.engine} engine"
                + (", hot rows before Quart" if self.hot_rows else ", through Quart"),
                durable=True,
                durability="on disk before the answer (one synced commit for all that waits)",
                keeps="each state, by device and time, checked against the device's attributes; its newest values",
                origin=session.origin,
                works=lambda tally, count: fleet.state_posts(tally, rehearsal=False, per_call=count),
                kept=kept,
            )
        finally:
            session.close()


class TrunklineStock(Trunkline):
    """The same with Hypercorn as it is."""

    name = "Trunkline, stock engine"
    engine = "stock"


class TrunklineQuart(TrunklineStock):
    """Hypercorn as it is, and every call through Quart: what the same application costs without its fast way in."""

    name = "Trunkline, stock engine through Quart"
    hot_rows = False
