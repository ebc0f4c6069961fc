"""The systemd unit and the Dockerfile fit the program that they start."""

from __future__ import annotations

import re
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest

from tests.rules.operator_tables import command_tree
from trunkline.http.wire.descriptors import DESCRIPTORS_BESIDE
from trunkline.limits.settings import Settings, load_settings
from trunkline.limits.table import Limits


@pytest.fixture(scope="module")
def service(checkout: Path) -> Any:
    """The section `[Service]` of the unit. Of a key that is given twice, the last value."""
    parser = ConfigParser(strict=False, interpolation=None, delimiters=("=",), comment_prefixes=("#",))
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(checkout / "docs" / "deploy" / "trunkline.service", encoding="utf-8")
    assert parser.sections() == ["Unit", "Service", "Install"]
    return parser["Service"]


@pytest.fixture(scope="module")
def dockerfile(checkout: Path) -> str:
    return (checkout / "docs" / "deploy" / "Dockerfile").read_text(encoding="utf-8")


def options_of(name: str) -> set[str]:
    """The options of a command."""
    command = dict(command_tree())[f"trunkline {name}"]
    return {option for param in command.params for option in param.opts}


def serve_options() -> set[str]:
    """The options of `trunkline serve`."""
    return options_of("serve")


def test_the_unit_starts_the_server(service: Any) -> None:
    program, command, *rest = service["ExecStart"].split()
    assert (Path(program).name, command) == ("trunkline", "serve")
    assert {word for word in rest if word.startswith("--")} <= serve_options()
    options = dict(zip(rest[::2], rest[1::2], strict=True))
    assert options["--data"] == f"/var/lib/{service['StateDirectory']}"
    assert Path(options["--config"]).parent == Path("/etc", service["ConfigurationDirectory"])
    assert service["ConfigurationDirectoryMode"] == "0755", (
        "as `install -D` makes it: systemd warns of another one"
    )


def test_the_unit_waits_longer_than_the_server_needs(service: Any) -> None:
    limits = Limits()
    assert service["Type"] == "notify", "http/systemd.py"
    assert int(service["TimeoutStopSec"]) >= 2 * limits.drain_s
    assert int(service["LimitNOFILE"]) >= limits.connections_max + DESCRIPTORS_BESIDE


def test_the_image_gets_all_rooms_and_nothing_else(checkout: Path, rooms: tuple[str, ...]) -> None:
    """What the build context leaves out cannot be in the image: no data, no keys, no history."""
    lines = (checkout / "docs" / "deploy" / "Dockerfile.dockerignore").read_text().splitlines()
    assert "*" in lines
    kept = {line[1:] for line in lines if line.startswith("!")}
    assert kept == {*rooms, "pyproject.toml", "README.md", "LICENSE"}


def test_the_image_sets_only_settings_that_exist(dockerfile: str) -> None:
    given = dict(re.findall(r"\b(TRUNKLINE_\w+)=(\S+)", dockerfile))
    settings = load_settings(toml_text=None, environ=given, overrides={})
    assert (settings.data_dir, settings.host) == ("/data", "0.0.0.0")
    assert f"\nEXPOSE {Settings().port}\n" in dockerfile
    assert f"http://127.0.0.1:{Settings().port}/healthz" in dockerfile
    assert f"\nVOLUME {settings.data_dir}\n" in dockerfile


def test_the_image_does_not_run_as_root(dockerfile: str) -> None:
    (uid,) = re.findall(r"--uid (\d+)", dockerfile)
    assert re.findall(r"^USER (.*)$", dockerfile, re.M) == [f"{uid}:{uid}"]


def test_the_image_has_a_python_that_the_package_takes(checkout: Path, dockerfile: str) -> None:
    versions = set(re.findall(r"^FROM python:(\d+\.\d+)-slim", dockerfile, re.M))
    assert len(versions) == 1
    text = (checkout / "pyproject.toml").read_text(encoding="utf-8")
    assert f"Programming Language :: Python :: {versions.pop()}" in text


def test_the_timer_backs_the_data_of_the_service_up(checkout: Path, service: Any) -> None:
    """The unit of the backup calls the same program as the same user, with the same configuration and directory."""
    unit = (checkout / "docs" / "deploy" / "trunkline-backup.service").read_text(encoding="utf-8")
    program = service["ExecStart"].split()[0]
    same = " ".join(service["ExecStart"].split()[2:])
    assert f"{program} backup {same} " in unit
    assert f"\nUser={service['User']}\nGroup={service['Group']}\n" in unit
    assert "--data" in options_of("backup")
    timer = (checkout / "docs" / "deploy" / "trunkline-backup.timer").read_text(encoding="utf-8")
    assert "OnCalendar=" in timer
    assert "Persistent=true" in timer
