"""What a machine gets that is invited by the one that serves: the secret, the encryption keys, the settings that all
machines share, and the authorities of the NATS servers; and the directory and the configuration that it begins with.

It crosses the network on a connection both ends of which have proved to know the invitation
(`http/hosting/invitations.py`), and is written to files that only their owner can read.
"""

from __future__ import annotations

import json
import os
import socket
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from trunkline.actors.maintenance.data_directory import keys_file_of
from trunkline.limits.errors import SettingsError
from trunkline.limits.settings import Settings, load_settings
from trunkline.store.directory import KEYS_FILE, SECRET, DataDirectory, has_data, read_private, write_private
from trunkline.store.errors import SecretMissing, translate

SHARED: Final = (
    "cluster_nats",
    "cluster_name",
    "cluster_user",
    "cluster_password",
    "cluster_seed",
    "cluster_silence_ms",
    "blobs",
    "blobs_region",
    "blobs_access_key",
    "blobs_secret_key",
    "s3_endpoint",
)
"""The settings that are the same on all machines."""
TO_COME: Final = {"cluster_nats": "nats://127.0.0.1:4222", "blobs": "/srv"}
"""In the place of shared settings, as long as they are not known."""
FILE_BYTES_MAX: Final = 1 << 20


class Shared(msgspec.Struct, frozen=True):
    """What all machines of a server have in common."""

    secret: str
    encryption_keys: str
    settings: dict[str, Any]
    cluster_ca_certs: str = ""
    """What the file of this name holds; empty where there is none."""
    machines: dict[str, str] = {}
    """By name, the addresses of those that are there."""


def shared_by(settings: Settings, machines: Mapping[str, str]) -> bytes:
    """What a machine has in common with all others, and who they are. Raises StoreError."""
    directory = Path(settings.data_dir)
    keys_file = keys_file_of(settings) or directory / KEYS_FILE
    try:
        files = [read_private(each, FILE_BYTES_MAX).decode() for each in (directory / SECRET, keys_file)]
    except FileNotFoundError as missing:
        raise SecretMissing(f"{missing.filename} is missing.") from None
    secret, encryption_keys = files
    authorities = ""
    if settings.cluster_ca_certs is not None:
        try:
            authorities = Path(settings.cluster_ca_certs).read_text(errors="replace")  # of comments
        except OSError as error:
            raise translate(error, f"reading of {settings.cluster_ca_certs}") from error
    shared = Shared(secret, encryption_keys, set_of(settings, SHARED), authorities, dict(machines))
    return msgspec.json.encode(shared)


def set_of(settings: Settings, names: Iterable[str]) -> dict[str, Any]:
    """Those of these settings that are set."""
    return {name: value for name in names if (value := getattr(settings, name)) is not None}


def check_new(directory: Path, config: Path, address: str) -> None:
    """Raise SettingsError unless a machine can begin with this directory, configuration and address for others."""
    if has_data(directory) or (directory / SECRET).exists():
        raise SettingsError(str(directory), "has data or a secret already", "give an empty one")
    check_place(config, address)


def check_place(config: Path, address: str) -> None:
    """Raise SettingsError unless a configuration can be written there that is new, and others can reach this machine at
    the address."""
    host, _, port = address.rpartition(":")
    try:
        family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
        with socket.create_server((host.strip("[]"), int(port)), family=family):
            pass
    except OSError as problem:
        raise SettingsError(
            "cluster_address",
            f"is {address}, which cannot be listened on: {problem.strerror}",
            "give an address of this machine, with a port that nothing else uses",
        ) from None
    if config.exists() and config.stat().st_size:
        raise SettingsError(str(config), "exists already", "give another name for the configuration")
    if not config.absolute().parent.is_dir():
        raise SettingsError(str(config), "is in a folder that does not exist", "make it first")


def put(config: Path, text: str) -> None:
    """Write a configuration; on disk when this returns. Of a file that is there, and empty, the owner, the group and
    what the group may do stay, as a service needs. Raises OSError."""
    before = config.stat() if config.exists() else None
    write_private(config, text.encode())
    if before is not None:
        config.chmod(stat.S_IMODE(before.st_mode) & 0o660)
        os.chown(config, before.st_uid, before.st_gid)


def config_text(settings: Mapping[str, object]) -> str:
    """The configuration with these settings. Raises SettingsError if one of them is wrong."""
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in settings.items()]
    load_settings(toml_text="".join(lines), environ={}, overrides={})
    return "".join(lines)


def begin(shared: bytes, directory: Path, config: Path, own: Mapping[str, str]) -> None:
    """Write the secrets into a data directory, and the configuration, in which `own` are those of this machine alone;
    and beside that the authorities of the NATS servers, if they have their own.

    On disk when this returns. Nothing is written if a setting is wrong. Raises SettingsError and StoreError.
    """
    try:
        given = msgspec.json.decode(shared, type=Shared)
    except msgspec.DecodeError:
        raise SettingsError(
            "the invitation", "was not answered to the end", "make a new one, and repeat the command"
        ) from None
    for name, address in given.machines.items():
        if name == own["cluster_node"] or address == own["cluster_address"]:
            raise SettingsError(
                "cluster_node" if name == own["cluster_node"] else "cluster_address",
                f"is that of a machine that is there: {name} at {address}",
                "make a new invitation, and give another one",
            )
    authorities = config.absolute().with_suffix(".nats-ca.pem")
    named = {"cluster_ca_certs": str(authorities)} if given.cluster_ca_certs else {}
    if named and authorities.exists():
        raise SettingsError(str(authorities), "exists already", "give another name for the configuration")
    text = config_text({"data_dir": str(directory.absolute()), **own, **given.settings, **named})
    try:
        with DataDirectory.open(directory) as made:
            write_private(directory / SECRET, given.secret.encode())
            write_private(directory / KEYS_FILE, given.encryption_keys.encode())
            made.keep()
        if named:
            write_private(authorities, given.cluster_ca_certs.encode())
        put(config, text)
    except OSError as error:
        raise translate(error, f"writing of {directory} and {config}") from error
