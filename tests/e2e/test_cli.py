"""The commands for operators, with and without a running server: users, backup, the secret, check."""

from __future__ import annotations

import copy
import json
import os
import re
import socket
import stat
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import lmdb
import pytest
import trio

from tests.e2e.conftest import EMAIL, PASSWORD, Server, running_server
from tests.e2e.crash_load import Load, read_commands, read_states
from tests.e2e.server_process import one_sentence, serving, started, trunkline
from tests.patience import PATIENCE_S
from tests.store.test_directory_owner import give_away
from trunkline.bench.session import Session
from trunkline.http.routes import TABLE
from trunkline.http.version import VERSION
from trunkline.store.directory import data_file

pytestmark = pytest.mark.slow

NEW = {"TRUNKLINE_PASSWORD_FOR_USER": "Another-horse-8"}


# Users.


async def test_users_are_kept_without_a_server(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path / "data"))
    added = await trunkline("user", "add", "ann@example.com", *data, env=NEW)
    assert added.returncode == 0, added.stderr
    listed = await trunkline("user", "list", *data)
    assert listed.stdout.split()[::2] == [added.stdout.split()[0], "ann@example.com"]
    await trunkline("user", "passwd", "ann@example.com", "--password", PASSWORD, *data)
    # With a user there, the start makes no other one, whatever the environment says.
    async with started(tmp_path / "data") as server:
        assert await server.listens()
        assert await server.log_in("ann@example.com")
        await server.call("POST", "/auth/user", {"email": EMAIL, "password": PASSWORD}, token="", status=401)


async def test_users_are_kept_while_a_server_runs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Through the control socket, which only its owner may open, also if its path is long."""
    directory = tmp_path / ("long" * 30) / ("longer" * 20)
    directory.parent.mkdir()
    data = ("--data", str(directory))
    async with running_server(directory) as server:
        assert stat.S_IMODE((directory / "control.sock").stat().st_mode) == 0o600
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        added = await trunkline("user", "add", "ann@example.com", *data, env=NEW)
        assert added.returncode == 0, added.stderr
        bearer = await server.log_in("ann@example.com", NEW["TRUNKLINE_PASSWORD_FOR_USER"])
        listed = (await trunkline("user", "list", *data)).stdout
        assert [line.split()[-1] for line in listed.splitlines()] == [EMAIL, "ann@example.com"]
        changed = await trunkline("user", "passwd", "ann@example.com", "--password", PASSWORD, *data)
        assert changed.returncode == 0, changed.stderr
        await server.call("GET", "/me", token=bearer, status=401)
        assert (await server.call("GET", "/me", token=await server.log_in("ann@example.com")))["email"]
        one_sentence(await trunkline("user", "add", EMAIL, *data, env=NEW))
        weak = one_sentence(await trunkline("user", "add", "b@example.com", "--password", "weak", *data))
        assert "password" in weak.lower()
    logged = "".join(capfd.readouterr())
    assert not any(password in logged for password in (PASSWORD, *NEW.values()))


@pytest.mark.parametrize("serving_it", [True, False], ids=["while a server runs", "without a server"])
async def test_a_deleted_user_leaves_nothing(tmp_path: Path, serving_it: bool) -> None:
    """The tokens end, the address is free again, and applications are deleted only if that is said."""
    data = ("--data", str(tmp_path / "data"))
    delete = ("user", "delete", "ann@example.com", *data)
    async with AsyncExitStack() as running:
        server = await running.enter_async_context(serving(tmp_path / "data"))
        assert (await trunkline("user", "add", "ann@example.com", *data, env=NEW)).returncode == 0
        bearer = await server.log_in("ann@example.com", NEW["TRUNKLINE_PASSWORD_FOR_USER"])
        application = await server.call("POST", "/applications", {"name": "hers"}, token=bearer)
        await server.call("POST", "/me/tokens", {"name": "one"}, token=bearer)
        mine = await server.application("mine")
        if not serving_it:
            await running.aclose()
        assert "owns applications: 1." in one_sentence(await trunkline(*delete))
        done = await trunkline(*delete, "--with-applications")
        assert done.stdout == "ann@example.com is deleted, and applications: 1.\n", done.stderr
        assert "There is no user ann@example.com." in one_sentence(await trunkline(*delete))
        assert [
            line.split()[-1] for line in (await trunkline("user", "list", *data)).stdout.splitlines()
        ] == [EMAIL]
        if not serving_it:
            server = await running.enter_async_context(serving(tmp_path / "data"))
        await server.call("GET", "/me", token=bearer, status=401)
        await server.call("GET", f"/applications/{application['id']}", status=404)
        assert await server.call("GET", mine)
        assert (await trunkline("user", "add", "ann@example.com", *data, env=NEW)).returncode == 0
        bearer = await server.log_in("ann@example.com", NEW["TRUNKLINE_PASSWORD_FOR_USER"])
        assert (await server.call("GET", "/applications", token=bearer))["totalCount"] == 0
        assert (await server.call("GET", "/me/tokens", token=bearer))["totalCount"] == 0
        assert await server.terminate() == 0
    assert (await trunkline("check", *data)).returncode == 0


async def test_the_only_user_cannot_be_deleted(tmp_path: Path) -> None:
    """Without users nobody could log in, and the next start would make one with a new password."""
    async with serving(tmp_path / "data") as server:
        application = await server.application()
        done = await trunkline(
            "user", "delete", EMAIL, "--with-applications", "--data", str(tmp_path / "data")
        )
        assert one_sentence(done) == f"{EMAIL} is the only user; add another one first."
        assert await server.call("GET", application)


async def test_nonsense_on_the_control_socket_hurts_nobody(server: Server) -> None:
    control = str(Path(server.settings.data_dir) / "control.sock")
    nonsense = (b"", b"\n", b"{}\n", b'{"user.list": {"x": "y"}}\n', b"[1]\n", b"no end", b"\xff\n")
    for said in nonsense:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(control)
            client.sendall(said)
    for command in ("no.such", "user.add"):
        async with await trio.open_unix_socket(control) as stream:
            await stream.send_all(json.dumps({command: {}}).encode() + b"\n")
            with trio.fail_after(PATIENCE_S):
                assert set(json.loads(await stream.receive_some())) == {"error"}
    async with await trio.open_unix_socket(control) as stream:
        await stream.send_all(b'{"user.list": {}}\n')
        with trio.fail_after(PATIENCE_S):
            assert set(json.loads(await stream.receive_some())) == {"ok"}
    assert await server.call("GET", "/me")


async def test_a_held_directory_without_a_server_is_told(server: Server) -> None:
    """While another command holds it, no server can be asked."""
    (Path(server.settings.data_dir) / "control.sock").unlink()
    said = one_sentence(await trunkline("user", "list", "--data", server.settings.data_dir))
    assert f"in use by process {os.getpid()}" in said


@pytest.mark.parametrize(
    "command",
    [("user", "list"), ("backup", "copy")],
    ids=lambda command: command[0],
)
async def test_a_mistyped_directory_is_told_and_not_made(tmp_path: Path, command: tuple[str, ...]) -> None:
    done = await trunkline(*command, "--data", str(tmp_path / "typo"), env=NEW, cwd=tmp_path)
    assert "is not a data directory" in one_sentence(done)
    assert not (tmp_path / "typo").exists()
    assert not (tmp_path / "copy").exists()


ON_DATA = [
    ("user", "list"),
    ("user", "passwd", EMAIL),
    ("user", "operator", EMAIL),
    ("secret", "rotate"),
    ("secret", "rekey"),
    ("partition", "--count", "2"),
    ("backup", "copy"),
    ("check",),
]


@pytest.mark.parametrize("holds", ["nothing", "something else", "an empty file"])
async def test_no_command_makes_another_directory_a_data_directory(tmp_path: Path, holds: str) -> None:
    other = tmp_path / "other"
    (other / "store").mkdir(parents=True)
    if holds == "nothing":
        (other / "store").rmdir()
    elif holds == "something else":
        (other / "report").touch()
    else:
        (other / "store" / "data.mdb").touch()
    other.chmod(0o1777)
    before = sorted(other.rglob("*"))
    for command in ON_DATA:
        done = await trunkline(*command, "--data", str(other), env=NEW, cwd=tmp_path)
        assert one_sentence(done) == f"{other} holds no data; name the right one with --data"
    if holds == "something else":
        for command in (("serve", "--port", "0"), ("user", "add", EMAIL)):
            done = await trunkline(*command, "--data", str(other), env=NEW, cwd=tmp_path)
            assert one_sentence(done).startswith(f"{other} is not a data directory, and is not empty: it")
    assert sorted(other.rglob("*")) == before
    assert stat.S_IMODE(other.stat().st_mode) == 0o1777
    assert not (tmp_path / "copy").exists()


async def test_a_file_is_told_from_a_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for command in (*ON_DATA, ("serve", "--port", "0"), ("user", "add", EMAIL), ("cluster", "status")):
        said = one_sentence(await trunkline(*command, "--data", str(tmp_path / "file"), env=NEW))
        assert said == f"{tmp_path / 'file'} is a file, not a directory. Name a data directory."


async def test_a_trial_is_not_made_among_other_things(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "lock").touch()
    said = one_sentence(await trunkline("cluster", "try", "--data", str(other)))
    assert said == f"{other} is not empty, and holds no trial; name an empty directory"
    assert [path.name for path in other.iterdir()] == ["lock"]


async def test_a_command_of_another_user_writes_nothing(tmp_path: Path) -> None:
    """The server could not read it: its user may not open what root, for one, has made."""
    data = tmp_path / "data"
    assert (await trunkline("user", "add", EMAIL, "--data", str(data), env=NEW)).returncode == 0
    give_away(data_file(data))
    before = {path: path.lstat().st_mtime_ns for path in data.rglob("*")}
    for command in (*ON_DATA[:-1], ("user", "add", "ann@example.com")):
        done = await trunkline(*command, "--data", str(data), env=NEW, cwd=tmp_path)
        assert one_sentence(done).startswith(f"The data in {data} belong to ")
    assert {path: path.lstat().st_mtime_ns for path in data.rglob("*")} == before


# The first user.


async def test_the_first_password_is_shown_once_and_kept_nowhere(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with started(data, env={}) as server:
        shown = await server.prints(r"First user: (\S+)  password: (\S+)")
        email, password = shown.groups()
        assert await server.listens()
        assert await server.log_in(email, password)
        assert await server.terminate() == 0
        assert (await server.output()).count(password) == 1
    assert email == "admin@localhost"
    async with started(data, env={}) as server:
        assert await server.listens()
        assert await server.log_in(email, password)
        assert await server.terminate() == 0
        assert "password:" not in await server.output()
    files = [data.with_name("data.log"), *(path for path in data.rglob("*") if path.is_file())]
    assert not [str(path) for path in files if password.encode() in path.read_bytes()]


# Backup and check.


async def test_a_backup_under_load_is_whole_and_can_be_served(tmp_path: Path) -> None:
    """It holds everything that was acknowledged before it began, and of the rest a beginning."""
    copied = tmp_path / "copy"
    async with serving(tmp_path / "data", "--limits", "off") as server:
        load = Load(server.url, server.token, seed=5)
        await load.prepare()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(load.run)
            with trio.fail_after(PATIENCE_S):
                await load.reached(200)
            before = copy.deepcopy(load.books)
            done = await trunkline("backup", str(copied), "--data", str(tmp_path / "data"))
            assert done.returncode == 0, done.stderr
            assert load.books.acknowledged > before.acknowledged
            await server.kill()
        owner = server.token
    assert stat.S_IMODE((copied / "secret").stat().st_mode) == 0o600
    checked = await trunkline("check", "--data", str(copied))
    assert (checked.returncode, "No problem found." in checked.stdout) == (0, True), checked.stdout
    async with serving(copied) as server:
        session = Session(server.url, token=owner)
        for device, calls in before.states.items():
            stored = await read_states(session, device)
            sent = [*load.books.states[device], *load.books.under_way(device)]
            assert len(stored) >= sum(map(len, calls))
            assert stored == [point for points in sent for point in points][: len(stored)]
        for device, commands in before.commands.items():
            logged = await read_commands(session, device)
            assert len(logged) >= len(commands)
            assert logged == (load.books.commands[device] + load.books.under_way(device))[: len(logged)]
        session.close()


async def test_a_backup_never_overwrites(server: Server, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").write_text("precious")
    done = await trunkline("backup", str(tmp_path / "taken"), "--data", server.settings.data_dir)
    assert "is not empty" in one_sentence(done)
    assert (tmp_path / "taken" / "file").read_text() == "precious"


def undecodable(transaction: lmdb.Transaction[bytes], databases: dict[str, Any]) -> None:
    """Give a record a value that is not valid CBOR."""
    cursor = transaction.cursor(databases["records"])
    assert cursor.first()
    transaction.put(bytes(cursor.key()), b"\xff\xff", db=databases["records"])


def dangling(transaction: lmdb.Transaction[bytes], databases: dict[str, Any]) -> None:
    """Take away an index entry that a record has."""
    cursor = transaction.cursor(databases["indexes"])
    assert cursor.first()
    assert cursor.delete()


@pytest.mark.parametrize("damage", [undecodable, dangling])
async def test_check_finds_what_is_broken(
    tmp_path: Path, damage: Callable[[lmdb.Transaction[bytes], dict[str, Any]], None]
) -> None:
    async with running_server(tmp_path / "data") as server:
        await server.device(await server.application())
    with lmdb.open(str(tmp_path / "data" / "store"), max_dbs=16) as env:
        databases = {name: env.open_db(name.encode()) for name in ("records", "indexes")}
        with env.begin(write=True) as transaction:
            damage(transaction, databases)
    done = await trunkline("check", "--data", str(tmp_path / "data"))
    assert "problems found: " in one_sentence(done)
    assert re.search(r"^(records|indexes) [0-9a-f]+: ", done.stdout, re.MULTILINE), done.stdout


# The secret.


async def test_a_rotated_secret_ends_every_token(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path / "data"))
    async with running_server(tmp_path / "data") as server:
        refused = one_sentence(await trunkline("secret", "rotate", *data))
        assert f"in use by process {os.getpid()}" in refused
        old = server.token
    async with running_server(tmp_path / "data") as server:
        await server.call("GET", "/me", token=old)
    assert (await trunkline("secret", "rotate", *data)).returncode == 0
    assert stat.S_IMODE((tmp_path / "data" / "secret").stat().st_mode) == 0o600
    async with running_server(tmp_path / "data") as server:
        await server.call("GET", "/me", token=old, status=401)
        await server.call("GET", "/me")


async def test_the_encryption_key_is_rotated(tmp_path: Path) -> None:
    data, place = ("--data", str(tmp_path / "data")), tmp_path / "data" / "encryption-keys"
    password = "horse-of-a-webhook"
    async with running_server(tmp_path / "data") as server:
        path = f"{await server.application()}/webhooks"
        body = {"name": "hook", "basicAuthUsername": "u", "basicAuthPassword": password}
        made = await server.call("POST", path, body, status=201)
        assert password not in json.dumps(made)
        refused = one_sentence(await trunkline("secret", "rekey", *data))
        assert f"in use by process {os.getpid()}" in refused
    before = place.read_text()
    done = await trunkline("secret", "rekey", *data)
    assert re.search(r"encrypted with the new key [0-9a-f]{8}: 1\.", done.stdout), done
    assert len(place.read_text().splitlines()) == 1
    assert place.read_text() != before
    assert (await trunkline("check", *data)).returncode == 0
    place.rename(tmp_path / "keys")
    done = await trunkline("check", *data)
    assert done.returncode == 1
    assert "which holds the encryption keys" in done.stdout.replace("\n", " ")
    (tmp_path / "c.toml").write_text(f"encryption_keys_file = '{tmp_path / 'keys'}'\n")
    verify = ("check", "--data", str(tmp_path / "copy"), "--config", str(tmp_path / "c.toml"))
    said = (await trunkline("backup", verify[2], *data, *verify[3:])).stdout
    assert f"`trunkline {' '.join(verify)}` verifies" in said
    assert f"encryption keys are in {tmp_path / 'keys'}; they are not in the copy" in said
    assert (await trunkline(*verify)).returncode == 0
    async with running_server(tmp_path / "data", encryption_keys_file=str(tmp_path / "keys")) as server:
        assert (await server.call("GET", path))["totalCount"] == 1
    kept = await trio.to_thread.run_sync(
        lambda: b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    )
    assert password.encode() not in kept


# The API and the version as text.


@pytest.mark.parametrize("command", [(), ("user",), ("user", "delete"), ("bench", "replay")])
async def test_help_has_a_short_form(command: tuple[str, ...]) -> None:
    short, long = [await trunkline(*command, form) for form in ("-h", "--help")]
    assert (short.returncode, short.stdout) == (0, long.stdout)
    assert "Usage: " in short.stdout


async def test_the_version_is_printed_by_both_forms() -> None:
    for arguments in (("version",), ("--version",)):
        done = await trunkline(*arguments)
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{VERSION}\n", "")


async def test_the_route_table_is_printed(tmp_path: Path) -> None:
    lines = (await trunkline("routes")).stdout.splitlines()
    printed = {(line.split()[0], line.split()[1]): line.split()[2] for line in lines}
    assert printed == {(route.method, route.path): route.operation for route in TABLE.routes}


async def test_the_openapi_document_is_that_of_the_server_and_names_the_scopes(server: Server) -> None:
    """Which test_operator_pages.py validates: that takes five seconds."""
    document = json.loads((await trunkline("openapi")).stdout)
    assert document == await server.call("GET", "/openapi.json")
    assert document["openapi"].startswith("3.1.")
    operations = {each["operationId"]: each for path in document["paths"].values() for each in path.values()}
    assert set(operations) == set(TABLE.operations)
    for route in TABLE.routes:
        assert sorted(operations[route.operation].get("x-scopes", [])) == sorted(route.scopes)
