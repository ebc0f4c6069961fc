"""A store of one format, kept for ever: a small data directory that a server of that format has written.

Owns what is in it, how it is packed, and the comparison of what a server of today answers with what the one answered
that wrote it. Does not own the servers.

`stores/format-N.tar.xz` has the data directory and `ledger.json`: the answers to all reads of one application that has
a bit of everything, the contents of its files, and the tokens that must still open it.

An archive holds nothing secret: its server had keys that follow from a sentence (`write_keys`), which are written again
when it is unpacked, and its tokens are kept without their signatures.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import io
import json
import re
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec

from tests.e2e.conftest import Server
from tests.e2e.whole_application import FILL, Whole

STORES: Final = Path(__file__).with_name("stores")
NAME: Final = re.compile(r"format-(\d+)\.tar\.xz")
LEDGER: Final = "ledger.json"
FIRST_MS: Final = 1_700_000_000_000
STATES: Final = 700
LISTS: Final = (
    "alarm-groups",
    "alarm-rules",
    "certificate-authorities",
    "certificates",
    "credentials",
    "dashboards",
    "data-tables",
    "device-recipes",
    "devices",
    "events",
    "experience/domains",
    "experience/endpoints",
    "experience/groups",
    "experience/slugs",
    "experience/users",
    "experience/versions",
    "experience/views",
    "files",
    "flows",
    "integrations",
    "keys",
    "notebooks",
    "privateFiles",
    "resource-jobs",
    "tokens",
    "webhooks",
)
HISTORY: Final = "start=1&end=1999999999999&limit=1000&sortDirection=asc"
BELOW: Final = {
    "data-tables": ("rows?limit=1000",),
    "devices": ("compositeState", f"state?{HISTORY}", f"command?{HISTORY}", f"logs?{HISTORY}"),
    "flows": ("versions", "storage"),
}
"""What is read below each record of a list."""
FILES: Final = ("files", "privateFiles")
KEY_FILES: Final = ("secret", "encryption-keys")
VOLATILE: Final = frozenset({"_etag", "_links", "url", "jupyterFileUrl"})
"""Fields that are made anew for each answer."""

CHANGED: Final[dict[str, Callable[[Any], Any]]] = {"parentDirectory": lambda path: path.rstrip("/") + "/"}
"""Fields that are told in another way today, by what was told then. The changelog says so of each ("At an upgrade")."""

Json = Any


class Ledger(msgspec.Struct):
    """What a server answered when the store was written."""

    format: int
    email: str
    password: str
    reads: dict[str, Json] = {}
    contents: dict[str, str] = {}
    """The SHA-256 of the content of each file, by its path."""
    bearers: dict[str, str] = {}
    """Tokens that do not expire, without their signatures, by the path that each may read."""


async def fill(server: Server, *, all_of_it: bool) -> tuple[str, dict[str, str], list[str]]:
    """Make the application; its path, the tokens by what they read, and what this server does not know.

    With `all_of_it`, that is a failure.
    """
    path = await server.application("kept")
    whole, unknown = Whole(server, path), []
    for make in dict.fromkeys(FILL.values()):
        try:
            await make(whole)
        except (AssertionError, KeyError) as refused:
            if all_of_it:
                raise
            unknown.append(f"{make.__name__}: {str(refused)[:200]}")
    device = await server.device(path, "reporter")
    states = [{"time": FIRST_MS + 1000 * n, "data": {"temp": n / 4, "on": n % 2 == 0}} for n in range(STATES)]
    await server.call("POST", f"{device}/state", states)
    for n in range(5):
        one = {"time": FIRST_MS + 1000 * (STATES + n), "data": {"temp": n, "label": f"büro {n}"}}
        await server.call("POST", f"{device}/state", one)
        await server.call("POST", f"{device}/command", {"name": f"c{n}", "payload": {"n": n}})
        body = {"level": "error", "subject": f"event {n}", "data": {"n": n}}
        await server.call("POST", f"{path}/events", body)
    status = {"status": "connected", "connectedAt": FIRST_MS}
    await server.call("POST", f"{device}/setConnectionStatus", status)
    token, _ = await server.device_token(device)
    made = await server.call("POST", f"{path}/tokens", {"name": "t", "scope": ["all.Application.read"]})
    bearers = {f"{device}/compositeState": token, f"{path}/devices": made["token"]}
    return path, {where: bearer.rpartition(".")[0] for where, bearer in bearers.items()}, unknown


async def record(server: Server, path: str, ledger: Ledger) -> None:
    """Add the answers to all reads of an application."""
    await _read(server, path, ledger)
    for many in LISTS:
        listed = f"{path}/{many}?perPage=1000"
        await _read(server, listed, ledger)
        for item in ledger.reads.get(listed, {}).get("items", ()):
            one = f"{path}/{many}/{item['id']}"
            await _read(server, one, ledger)
            for below in BELOW.get(many, ()):
                await _read(server, f"{one}/{below}", ledger)
            if many in FILES and (digest := await _digest(server, one)) is not None:
                ledger.contents[one] = digest


async def compare(server: Server, ledger: Ledger) -> int:
    """Read everything again; returns how many facts are as they were. Raises AssertionError with the first others."""
    wrong: list[str] = []
    facts = 0
    async with server.client() as client:
        for path, expected in ledger.reads.items():
            response = await client.get(path)
            found = response.json() if response.is_success else response.text
            wrong += differences(found, expected, path)
            facts += 1
    for path, digest in ledger.contents.items():
        if await _digest(server, path) != digest:
            wrong.append(f"{path}: another content")
        facts += 1
    for path, bearer in ledger.bearers.items():
        async with server.client(_signed(bearer)) as client:
            response = await client.get(path)
        if not response.is_success:
            wrong.append(f"{path}: its token gets {response.status_code} {response.text}")
        facts += 1
    assert not wrong, f"{len(wrong)} differences: " + "; ".join(wrong[:10])
    return facts


def differences(found: Json, expected: Json, where: str) -> Iterator[str]:
    """Where `found` has not what is expected. It may have more fields: those of later versions."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for name, value in expected.items():
            if name not in found:
                yield f"{where}.{name}: is missing"
            else:
                told = CHANGED[name](value) if name in CHANGED else value
                yield from differences(found[name], told, f"{where}.{name}")
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for number, (one, other) in enumerate(zip(found, expected, strict=True)):
            yield from differences(one, other, f"{where}[{number}]")
    elif found != expected:
        yield f"{where}: {str(found)[:200]} instead of {str(expected)[:200]}"


def pack(data_dir: Path, ledger: Ledger) -> Path:
    """Keep a data directory that no server uses, in place of one of the same format."""
    target = STORES / f"format-{ledger.format}.tar.xz"
    target.parent.mkdir(exist_ok=True)
    with tarfile.open(target, "w:xz", preset=9) as archive:
        for path in sorted(data_dir.rglob("*")):
            if str(path.relative_to(data_dir)) not in (*KEY_FILES, "lock", "store/lock.mdb"):
                archive.add(path, str(Path("data") / path.relative_to(data_dir)), recursive=False)
        content = json.dumps(msgspec.to_builtins(ledger), sort_keys=True).encode()
        entry = tarfile.TarInfo(LEDGER)
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return target


def unpack(number: int, data_dir: Path) -> Ledger:
    """Put the kept store of a format at a path that does not exist yet, and return what is in it."""
    with tarfile.open(STORES / f"format-{number}.tar.xz") as archive:
        for entry in archive.getmembers():
            folder, _, name = entry.name.partition("/")
            if folder == "data":
                archive.extract(entry.replace(name=name), data_dir, filter="data")
        write_keys(data_dir)
        content = archive.extractfile(LEDGER)
        assert content is not None
        return msgspec.json.decode(content.read(), type=Ledger)


def write_keys(data_dir: Path) -> None:
    """Give a data directory keys that everybody may know."""
    for name, text in zip(KEY_FILES, (_key("secret").hex(), f"6b657074 {_key('seal').hex()}\n"), strict=True):
        (data_dir / name).write_text(text)
        (data_dir / name).chmod(0o600)


def _key(what: str) -> bytes:
    return hashlib.sha256(f"A kept store holds nothing secret: {what}".encode()).digest()


def _signed(unsigned: str) -> str:
    signature = hmac.digest(_key("secret"), unsigned.encode(), "sha256")
    return f"{unsigned}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


def kept_formats() -> list[int]:
    """The formats of which a store is kept, the oldest first."""
    return sorted(int(found[1]) for path in STORES.iterdir() if (found := NAME.fullmatch(path.name)))


async def _read(server: Server, path: str, ledger: Ledger) -> None:
    """Note the answer to a read. What the server does not know is not there."""
    async with server.client() as client:
        response = await client.get(path)
    if response.is_success:
        ledger.reads[path] = lasting(response.json())


def lasting(answer: Json) -> Json:
    """An answer without what is made anew for each, such as signed links."""
    if isinstance(answer, dict):
        return {name: lasting(value) for name, value in answer.items() if name not in VOLATILE}
    return [lasting(each) for each in answer] if isinstance(answer, list) else answer


async def _digest(server: Server, path: str) -> str | None:
    """The SHA-256 of the content of a file. None if it has none, as a folder."""
    async with server.client() as client:
        url = (await client.get(path)).json().get("url")
    if url is None:
        return None
    async with httpx.AsyncClient(trust_env=False) as client:
        response = await client.get(url)
    assert response.is_success, (path, response.status_code, response.text)
    return hashlib.sha256(response.content).hexdigest()
