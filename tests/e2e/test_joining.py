"""A machine that is invited by the one that serves, with a real log: it gets what it needs to follow."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
import trustme

from tests.e2e.machines import Machines, machines_in, made, report, states
from tests.e2e.server_process import OWNER, serving, started, trunkline
from tests.nats_servers import nats_servers
from tests.patience import PATIENCE_S
from tests.ports import reserved_port

pytestmark = [pytest.mark.slow]


@pytest.fixture
async def machines(tmp_path: Path) -> AsyncIterator[Machines]:
    async with machines_in(tmp_path, silence_ms=60_000) as found:
        yield found


async def invited(machines: Machines) -> str:
    """What a machine is given that the first one invites."""
    done = await machines.command("a", "cluster", "invite")
    assert done.returncode == 0, done.stderr
    command = done.stdout.splitlines()[1].split()
    assert command[:3] == ["trunkline", "cluster", "join"]
    return command[3]


async def join(
    machines: Machines, invitation: str, name: str, address: str, node: str = ""
) -> subprocess.CompletedProcess[str]:
    folder = machines.folder
    arguments = ["--node", node or name, "--address", address, "--data", str(folder / name)]
    return await trunkline(
        "cluster", "join", invitation, *arguments, "--config", str(folder / f"{name}.toml")
    )


async def test_a_server_begins_with_a_configuration_that_was_checked(machines: Machines) -> None:
    folder, nats = machines.folder, str(machines.nats.address)

    async def init(address: str, config: str, *more: str) -> subprocess.CompletedProcess[str]:
        where = [
            "--blobs",
            str(folder / "files"),
            "--data",
            str(folder / "a"),
            "--config",
            str(folder / config),
        ]
        one = ["--node", "a", "--address", f"127.0.0.1:{port}", "--nats", address]
        return await trunkline("cluster", "init", *one, *where, "--name", "plant", *more, env=env)

    env = {**os.environ, "TRUNKLINE_CLUSTER_SILENCE_MS": "60000", "TRUNKLINE_CLUSTER_USER": "nobody"}
    env["TRUNKLINE_CLUSTER_PASSWORD"] = "secret"  # nobody is asked for it

    with reserved_port() as port:
        refused = await init(nats, "a.toml")
        assert refused.returncode == 1
        assert "cannot keep 3 copies of a log" in refused.stderr
        refused = await init("nats://127.0.0.1:1", "a.toml", "--replicas", "1")
        assert "names nats://127.0.0.1:1, which keeps no log" in refused.stderr
        assert not (folder / "a.toml").exists()
        done = await init(nats, "a.toml", "--replicas", "1")
        assert done.returncode == 0, done.stderr
        assert stat.S_IMODE((folder / "a.toml").stat().st_mode) == 0o600
        for line in ('cluster_user = "nobody"', "cluster_silence_ms = 60000", f'blobs = "{folder}/files"'):
            assert line in (folder / "a.toml").read_text()
        machines.joined["a"] = folder / "a.toml"
        async with machines.serving("a") as one:
            _, device = await made(one)
            await report(one, device, 1)
            assert await states(one, device) == [1]
            assert await invited(machines)
            checked = await trunkline("check", "--data", str(folder / "a"))
            assert checked.returncode == 0, "it knows the folder of the contents"
        refused = await init(nats, "b.toml", "--replicas", "1")
        assert "cluster_name is plant, and its log is there already" in refused.stderr
        assert not (folder / "b.toml").exists()


async def test_a_machine_joins_once_with_an_invitation(machines: Machines) -> None:
    with reserved_port() as port:
        async with machines.serving("a") as one:
            _, device = await made(one)
            await report(one, device, 1)
            invitation = await invited(machines)
            address = f"127.0.0.1:{port}"
            for wrong, problem in (
                (
                    f"{invitation[:-1]}{'01'[invitation[-1] == '0']}",
                    "the invitation does not let this machine in",
                ),
                ("nothing", "the invitation is 'nothing'"),
                ("127.0.0.1:1/x", "127.0.0.1:1 does not answer"),
            ):
                refused = await join(machines, wrong, "b", address)
                assert refused.returncode == 1
                assert problem in refused.stderr
            refused = await join(machines, invitation, "two words", address)
            assert "cluster_node is 'two words'" in refused.stderr
            refused = await join(machines, invitation, "b", "here")
            assert "cluster_address is 'here'" in refused.stderr
            refused = await join(machines, invitation, "b", "192.0.2.1:1")
            assert "cluster_address is 192.0.2.1:1, which cannot be listened on" in refused.stderr
            refused = await join(machines, await invited(machines), "b", address, node="a")
            assert "cluster_node is that of a machine that is there: a at" in refused.stderr
            assert not [each for each in machines.folder.iterdir() if each.name.startswith(("b", "two"))]
            done = await join(machines, invitation, "b", address)
            assert done.returncode == 0, done.stderr
            refused = await join(machines, invitation, "c", address)
            assert "the invitation does not let this machine in" in refused.stderr, "it was used"
            config = machines.folder / "b.toml"
            for file in (config, machines.folder / "b" / "secret", machines.folder / "b" / "encryption-keys"):
                assert stat.S_IMODE(file.stat().st_mode) == 0o600
            again = await join(machines, invitation, "b", address)
            assert "has data or a secret already" in again.stderr

            keys = ("TRUNKLINE_BLOBS_ACCESS_KEY", "TRUNKLINE_CLUSTER_NATS", "TRUNKLINE_BLOBS")
            assert all(machines.env("a")[key] in config.read_text() for key in keys)
            machines.joined["b"] = config
            async with machines.standing_by("b", one) as two:
                await report(two, device, 2)
                assert await one.terminate() == 0
                with trio.fail_after(PATIENCE_S):
                    assert await states(two, device) == [1, 2]
                assert await two.terminate() == 0


async def test_a_machine_that_joins_gets_the_authorities_of_the_nats_servers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nats").mkdir()
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_pem.write_to_path(tmp_path / "key.pem")
    issued.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    tls = f'tls {{ cert_file: "{tmp_path / "cert.pem"}", key_file: "{tmp_path / "key.pem"}" }}'

    async with nats_servers(tmp_path / "nats", more=tls) as (nats,):

        def command(name: str, port: int, *arguments: str) -> list[str]:
            own = ["--node", name, "--address", f"127.0.0.1:{port}"]
            return [*arguments, *own, "--data", name, "--config", f"{name}.toml"]

        async def init(ca_certs: str, port: int) -> subprocess.CompletedProcess[str]:
            log = ["--nats", f"tls://127.0.0.1:{nats.port}", "--replicas", "1", "--blobs", "files"]
            env = {**os.environ, "TRUNKLINE_CLUSTER_CA_CERTS": ca_certs}
            return await trunkline(*command("a", port, "cluster", "init", *log), env=env)

        with reserved_port() as port, reserved_port() as other:
            refused = await init("nope.pem", port)
            assert refused.returncode == 1
            assert "cluster_ca_certs is nope.pem, which cannot be read: No such file" in refused.stderr
            refused = await init("key.pem", port)
            assert "cluster_ca_certs is key.pem, which has no certificate;" in refused.stderr
            done = await init("ca.pem", port)
            assert done.returncode == 0, done.stderr
            config = tmp_path / "a.toml"
            assert f'cluster_ca_certs = "{tmp_path / "ca.pem"}"' in config.read_text()
            async with serving(tmp_path / "a", env={**OWNER, "TRUNKLINE_CONFIG": str(config)}):
                invited = await trunkline("cluster", "invite", "--config", str(config))
                invitation = invited.stdout.splitlines()[1].split()[3]
                done = await trunkline(*command("b", other, "cluster", "join", invitation))
                assert done.returncode == 0, done.stderr
                authorities = tmp_path / "b.nats-ca.pem"
                assert authorities.read_text() == (tmp_path / "ca.pem").read_text()
                assert stat.S_IMODE(authorities.stat().st_mode) == 0o600
                env = {**OWNER, "TRUNKLINE_CONFIG": str(tmp_path / "b.toml")}
                async with started(tmp_path / "b", "--port", "0", env=env) as two:
                    await two.prints(r"Standby b: (\S+) leads")
                authorities.unlink()
                refused = await trunkline("serve", "--config", str(tmp_path / "b.toml"))
                assert refused.returncode == 1
                *_, last = refused.stderr.strip().splitlines()
                assert last.startswith(f"trunkline: cluster_ca_certs is {authorities}, which cannot be read")


async def test_a_login_to_the_nats_servers_comes_from_variables(tmp_path: Path) -> None:
    (tmp_path / "nats").mkdir()
    config = tmp_path / "a.toml"
    config.touch(mode=0o640)
    config.chmod(0o640)  # as the service has it
    asked = 'authorization { user: "plant", password: "right" }'
    async with nats_servers(tmp_path / "nats", more=asked) as (nats,):

        async def init(**login: str) -> subprocess.CompletedProcess[str]:
            own = ["--node", "a", "--address", f"127.0.0.1:{port}", "--data", str(tmp_path / "a")]
            log = ["--nats", str(nats.address), "--replicas", "1", "--blobs", str(tmp_path / "files")]
            env = {**os.environ, **{f"TRUNKLINE_CLUSTER_{name}": value for name, value in login.items()}}
            return await trunkline("cluster", "init", *own, *log, "--config", str(config), env=env)

        with reserved_port() as port:
            refused = await init(USER="plant", PASSWORD="wrong")
            assert refused.returncode == 1
            for name in ("cluster_user", "cluster_password", "cluster_seed", "cluster_ca_certs"):
                assert name in refused.stderr.partition("Authorization Violation; give")[2]
            refused = await init(SEED="SUwrong")
            said = "trunkline: cluster_seed is not the seed of an nkey of a user; give 58 letters and digits"
            assert refused.stderr.startswith(said)
            assert config.read_text() == ""
            done = await init(USER="plant", PASSWORD="right")
            assert done.returncode == 0, done.stderr
            assert 'cluster_password = "right"' in config.read_text()
            assert stat.S_IMODE(config.stat().st_mode) == 0o640
            refused = await init(USER="plant", PASSWORD="right")
            assert f"{config} exists already" in refused.stderr


async def test_a_server_without_a_log_invites_nobody(tmp_path: Path) -> None:
    done = await trunkline("cluster", "invite", "--data", str(tmp_path))
    assert done.returncode == 1
    assert "is served by no server that answers" in done.stderr
