"""A start that is not possible is refused with one sentence and exit code 1; nothing ends in a traceback."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from tests.e2e.conftest import EMAIL
from tests.e2e.server_process import OWNER, one_sentence, serving, trunkline

pytestmark = pytest.mark.slow


async def refused(*arguments: str, **env: str) -> str:
    """The sentence that refuses `trunkline serve` with these arguments."""
    return one_sentence(await trunkline("serve", "--port", "0", *arguments, env={**OWNER, **env}))


async def test_a_second_server_on_the_same_directory(tmp_path: Path) -> None:
    async with serving(tmp_path / "data") as server:
        said = await refused("--data", str(tmp_path / "data"))
        assert said == (
            f"The data directory {tmp_path / 'data'} is in use by process {server.process.pid}. "
            "Stop that one first, or choose another directory."
        )
        await server.application("the first one goes on")


async def test_a_start_that_fails_keeps_the_first_password_for_the_next_one(tmp_path: Path) -> None:
    """A user made before the start was refused would have a password that nobody ever saw."""
    data = str(tmp_path / "data")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        said = one_sentence(await trunkline("serve", "--port", port, "--data", data))
        assert said == (
            f"127.0.0.1:{port} cannot be listened on: Address already in use. Choose another --host or --port."
        )
    missing = ("--certfile", str(tmp_path / "none.pem"), "--keyfile", str(tmp_path / "none.pem"))
    said = one_sentence(await trunkline("serve", "--port", "0", "--data", data, *missing))
    assert said.startswith("certfile (")
    assert "cannot be read: No such file" in said
    async with serving(tmp_path / "data", env=OWNER) as server:
        assert (await server.call("GET", "/me"))["email"] == EMAIL


@pytest.mark.parametrize(
    ("command", "env"),
    [
        (("serve", "--host", "192.0.2.1", "--port", "0"), OWNER),
        (("serve", "--port", "0"), {**OWNER, "TRUNKLINE_ADMIN_PASSWORD": "shorty"}),
        (("user", "add", "ann@example.com"), {"TRUNKLINE_PASSWORD_FOR_USER": "shorty"}),
    ],
    ids=["no address", "no first user", "user add"],
)
async def test_a_first_start_that_fails_leaves_no_directory_that_it_made(
    tmp_path: Path, command: tuple[str, ...], env: dict[str, str]
) -> None:
    (tmp_path / "there").mkdir()
    one_sentence(await trunkline(*command, "--data", str(tmp_path / "there" / "new" / "data"), env=env))
    assert list((tmp_path / "there").iterdir()) == []


async def test_a_start_that_fails_keeps_a_directory_that_others_made(tmp_path: Path) -> None:
    async with serving(tmp_path / "data") as server:
        application = await server.application("precious")
        assert await server.terminate() == 0
    await refused("--host", "192.0.2.1", "--data", str(tmp_path / "data"))
    async with serving(tmp_path / "data") as server:
        assert (await server.call("GET", application))["name"] == "precious"


async def test_an_address_that_is_not_ours(tmp_path: Path) -> None:
    said = await refused("--host", "192.0.2.1", "--data", str(tmp_path / "data"))
    assert said.startswith("192.0.2.1:0 cannot be listened on: Cannot assign requested address.")


async def test_an_unknown_variable(tmp_path: Path) -> None:
    said = await refused("--data", str(tmp_path / "data"), TRUNKLINE_PROT="80")
    assert said == "TRUNKLINE_PROT is not a setting; did you mean TRUNKLINE_PORT?"


async def test_variables_of_a_container_platform_do_not_stop_the_start(tmp_path: Path) -> None:
    announced = {"TRUNKLINE_PORT": "tcp://10.96.0.12:8080", "TRUNKLINE_SERVICE_HOST": "10.96.0.12"}
    async with serving(
        tmp_path / "data", env={**OWNER, **announced, "TRUNKLINE_LOG_FORMAT": "json"}
    ) as server:
        lines = [json.loads(line) for line in server.log.splitlines()]
    (line,) = (line for line in lines if "variables" in line)
    assert (line["level"], line["variables"]) == ("warning", sorted(announced))


async def test_half_an_administrator(tmp_path: Path) -> None:
    said = one_sentence(
        await trunkline("serve", "--data", str(tmp_path / "data"), env={"TRUNKLINE_ADMIN_EMAIL": "a@b.c"})
    )
    assert said == "admin_password is not set although admin_email is; set both or neither"


async def test_a_first_user_that_can_not_be(tmp_path: Path) -> None:
    said = await refused("--data", str(tmp_path / "data"), TRUNKLINE_ADMIN_PASSWORD="shorty")
    assert "password" in said.lower()
    assert "shorty" not in said


@pytest.mark.parametrize(
    ("option", "content", "sentence"),
    [
        ("--config", b"prot = 1", "prot is not a setting; did you mean port?"),
        ("--limits", b"port = = 1", " is not TOML: Invalid value"),
        ("--limits", None, "No such file or directory."),
        ("--limits", b"\xff\xfe\x00", " is not text in UTF-8; name a TOML file"),
    ],
)
async def test_a_file_that_is_wrong(
    tmp_path: Path, option: str, content: bytes | None, sentence: str
) -> None:
    file = tmp_path / "wrong.toml"
    if content is not None:
        file.write_bytes(content)
    said = await refused("--data", str(tmp_path / "data"), option, str(file))
    assert said.startswith(str(file))
    assert sentence in said
    assert not (tmp_path / "data").exists()


async def test_a_limit_of_the_wrong_kind(tmp_path: Path) -> None:
    file = tmp_path / "limits.toml"
    file.write_text('send_state = "fast"\n')
    said = await refused("--data", str(tmp_path / "data"), "--limits", str(file))
    assert said.startswith(
        f"{file}: send_state is 'fast', which is not a valid rate; give {{calls = 30, window_s = 15}}"
    )


async def test_a_data_directory_that_can_not_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    said = await refused("--data", str(tmp_path / "file" / "data"))
    assert str(tmp_path / "file" / "data") in said


async def test_a_data_directory_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    said = await refused("--data", str(tmp_path / "file"))
    assert str(tmp_path / "file") in said
    assert (tmp_path / "file").read_text() == "in the way"


async def test_a_store_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "data" / "store").mkdir(parents=True)
    (tmp_path / "data" / "store" / "data.mdb").write_bytes(os.urandom(65_536))
    said = await refused("--data", str(tmp_path / "data"))
    assert str(tmp_path / "data") in said


async def test_a_store_that_is_lost(tmp_path: Path) -> None:
    """An empty one in its place would answer as if nobody had ever used the server."""
    data = tmp_path / "data"
    async with serving(data) as server:
        application = await server.application("precious")
        assert await server.terminate() == 0
    (data / "store").rename(tmp_path / "unmounted")
    said = await refused("--data", str(data))
    assert said.startswith(f"{data} has had data, and {data / 'store' / 'data.mdb'} is missing or empty.")
    for command in (("user", "list"), ("secret", "rekey")):
        assert one_sentence(await trunkline(*command, "--data", str(data))) == said
    assert not (data / "store").exists()
    (tmp_path / "unmounted").rename(data / "store")
    async with serving(data) as server:
        assert (await server.call("GET", application))["name"] == "precious"


async def test_a_secret_that_others_may_read(tmp_path: Path) -> None:
    async with serving(tmp_path / "data") as server:
        assert await server.terminate() == 0
    (tmp_path / "data" / "secret").chmod(0o644)
    said = await refused("--data", str(tmp_path / "data"))
    assert f"{tmp_path / 'data' / 'secret'} may be read by others" in said


async def test_data_whose_secret_is_lost(tmp_path: Path) -> None:
    """A new one would make the tokens of all devices invalid without a word."""
    data = ("--data", str(tmp_path / "data"))
    async with serving(tmp_path / "data") as server:
        token = server.token
        assert await server.terminate() == 0
    (tmp_path / "data" / "secret").unlink()
    said = await refused(*data)
    assert said.startswith(f"{tmp_path / 'data'} has data but no file `secret`")
    assert f"trunkline secret rotate --data {tmp_path / 'data'}" in said
    for command in (("backup", str(tmp_path / "copy")), ("partition", "--count", "2")):
        assert one_sentence(await trunkline(*command, *data)) == said
    assert not (tmp_path / "copy").exists()
    assert not (tmp_path / "data" / "partitions").exists()
    assert not (tmp_path / "data" / "secret").exists()
    assert (await trunkline("secret", "rotate", *data)).returncode == 0
    async with serving(tmp_path / "data") as server:
        await server.call("GET", "/me", token=token, status=401)
        await server.call("GET", "/me")
