"""`trunkline cluster`: the machines of a server that has a log."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trunkline.http.cli.options import (
    ConfigOption,
    DataOption,
    effective_settings,
    existing_directory,
    log_errors_only,
    no_server_at,
)
from trunkline.limits.errors import SettingsError

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.machines import ClusterStatus, MachineLine
    from trunkline.limits.settings import Settings

_NodeOption = Annotated[str, typer.Option(metavar="NAME", help="The name of this machine.")]
_AddressOption = Annotated[
    str,
    typer.Option(metavar="IP:PORT", help="Where the other machines reach this one, such as 10.0.0.1:8470."),
]
_NewConfigOption = Annotated[
    Path, typer.Option("--config", metavar="FILE.toml", help="The configuration file that is written.")
]

cluster_app = typer.Typer(help="The machines of a server that has a log.", no_args_is_help=True)


@cluster_app.callback()
def cluster() -> None:
    """The machines of a server that has a log."""


@cluster_app.command("status")
def status_command(data: DataOption = None, config: ConfigOption = None) -> None:
    """Show all machines, the log, and what could not be borne now. Any machine of the server can be asked.

    Exits with 1 if anything could not be borne.
    """
    status = _status(Path(existing_directory(data, config).data_dir))
    for line in _lines(status):
        typer.echo(line)
    if status.risks:
        raise typer.Exit(1)


@cluster_app.command("init")
def init_command(
    node: _NodeOption,
    address: _AddressOption,
    nats: Annotated[
        list[str],
        typer.Option(
            metavar="URL",
            help="A NATS server, such as nats://10.0.0.1:4222; once for each, the nearest first.",
        ),
    ],
    blobs: Annotated[
        str,
        typer.Option(
            metavar="PLACE", help="A bucket such as s3://files/plant, or a folder, which all machines reach."
        ),
    ],
    config: _NewConfigOption,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="The name of the log (default: trunkline).")
    ] = None,
    replicas: Annotated[
        int | None, typer.Option(min=1, max=5, help="How many NATS servers keep the log (default: 3).")
    ] = None,
    data: DataOption = None,
) -> None:
    """Write the configuration of the first machine of a server with a log, if its NATS servers can keep one.

    The data directory may have data: those are the data of the server then. Settings of the environment that all
    machines share, such as a password of the NATS servers, are written as well.
    """
    import trio

    from trunkline.actors.maintenance.first_machine import check_log, write_config
    from trunkline.actors.maintenance.invited import check_place

    settings = effective_settings(
        None,
        None,
        data_dir=data,
        cluster_nats=" ".join(nats),
        cluster_name=name,
        cluster_node=node,
        cluster_address=address,
        cluster_replicas=replicas,
        blobs=blobs if "://" in blobs else str(Path(blobs).absolute()),
    )
    log_errors_only()
    check_place(config, address)
    trio.run(check_log, settings)
    write_config(settings, config)
    typer.echo(f"{config} has the settings, and the NATS servers can keep the log.")
    typer.echo(f"Start this machine: trunkline serve --config {config}")
    typer.echo(f"Then invite the next one: trunkline cluster invite --config {config}")


@cluster_app.command("invite")
def invite_command(data: DataOption = None, config: ConfigOption = None) -> None:
    """Print the command with which another machine joins. It works once, and for ten minutes.

    Whoever has it gets the secret and the encryption keys of the server. It is made by the machine that serves.
    """
    import trio

    from trunkline.http.control_client import ask_server

    directory = Path(existing_directory(data, config).data_dir)
    made: str | None = trio.run(ask_server, directory, "cluster.invite", {}, no_server_at(directory))
    if made is None:
        raise _alone()
    typer.echo("Run this on the other machine, with a name and an address of its own:")
    typer.echo(f"trunkline cluster join {made} --node NAME --address IP:PORT --data DIR --config FILE.toml")


@cluster_app.command("join")
def join_command(
    invitation: Annotated[str, typer.Argument(help="What `trunkline cluster invite` has printed.")],
    node: _NodeOption,
    address: _AddressOption,
    config: _NewConfigOption,
    data: DataOption = None,
) -> None:
    """Make a new machine of a server: get the secrets and the common settings from the one that has invited it.

    Start it with the configuration file; it gets a copy of the data then.
    """
    import trio

    from trunkline.actors.maintenance.invited import TO_COME, begin, check_new
    from trunkline.http.processes.machine_port import joined

    own = {"cluster_node": node, "cluster_address": address}
    directory = Path(effective_settings(None, None, data_dir=data, **TO_COME, **own).data_dir)
    check_new(directory, config, address)
    begin(trio.run(joined, invitation), directory, config, own)
    typer.echo(
        f"{directory} has the secrets, and {config} the settings. Start it: trunkline serve --config {config}"
    )


@cluster_app.command("give")
def give_command(
    node: Annotated[str, typer.Argument(help="The machine that shall serve, as `cluster status` names it.")],
    partition: Annotated[
        list[int] | None,
        typer.Option(metavar="N", help="A partition; once for each (default: all that this machine serves)."),
    ] = None,
    data: DataOption = None,
    config: ConfigOption = None,
) -> None:
    """Let another machine serve partitions that this one serves. Calls of these get 502 or 503 for a second or two.

    So a machine is drained before it is stopped.
    """
    directory = Path(existing_directory(data, config).data_dir)
    numbers = _status(directory).machines[0].owns if partition is None else partition
    _give(directory, dict.fromkeys(numbers, node))


@cluster_app.command("spread")
def spread_command(data: DataOption = None, config: ConfigOption = None) -> None:
    """Let all machines serve as many partitions, by giving away what this one serves and others should.

    Run it on each machine, one after the other. Calls of what is given get 502 or 503 for a second or two.
    """
    directory = Path(existing_directory(data, config).data_dir)
    status = _status(directory)
    names = sorted(each.name for each in status.machines if each.is_there)
    own = status.machines[0]
    targets = {number: names[number % len(names)] for number in own.owns}
    _give(directory, {number: name for number, name in targets.items() if name != own.name})


def _status(directory: Path) -> ClusterStatus:
    """What a running machine knows of all. Raises SettingsError if it is the only one."""
    import msgspec
    import trio

    from trunkline.actors.core.runtime.machines import ClusterStatus
    from trunkline.http.control_client import ask_server

    told: list[Any] | None = trio.run(ask_server, directory, "cluster.status", {}, no_server_at(directory))
    if told is None:
        raise _alone()
    return msgspec.convert(told, ClusterStatus)


def _give(directory: Path, targets: Mapping[int, str]) -> None:
    """Have each of these partitions served by another machine."""
    import trio

    from trunkline.actors.core.values.store_partitions import partition_directory
    from trunkline.http.control_client import ask_server

    if not targets:
        typer.echo("This machine serves nothing that another one should.")
    for number, node in targets.items():
        place = partition_directory(directory, number)
        if trio.run(ask_server, place, "cluster.give", {"node": node}, no_server_at(place)) is None:
            raise _alone()
        typer.echo(f"Partition {number} is given to {node}.")


@cluster_app.command("new-log")
def new_log_command(
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without this, only tell what is there.")] = False,
    data: DataOption = None,
    config: ConfigOption = None,
) -> None:
    """Begin a new log with the data of this machine, where the log is lost or broken, or after a restore.

    All machines must be stopped. Use the machine that served last: what only others or the log have is lost. The other
    machines need `cluster rejoin` then.
    """
    import trio

    from trunkline.actors.maintenance.log_repair import begin_again, standing

    settings = _with_log(data, config)
    lines, unreachable = trio.run(standing, settings)
    for line in lines:
        typer.echo(line)
    if not yes and unreachable is not None:
        raise unreachable
    if not yes:
        typer.echo("Nothing was done. If no machine has more, repeat the command with --yes.")
        return
    name = trio.run(begin_again, settings)
    typer.echo(f"The next start of this machine begins the log {name} with its data.")
    typer.echo("When it serves, run `trunkline cluster rejoin` on each other machine, and start that.")


@cluster_app.command("rejoin")
def rejoin_command(data: DataOption = None, config: ConfigOption = None) -> None:
    """Have this machine get a copy of the data at its next start, and put its own aside. It must be stopped.

    Another machine must serve the data.
    """
    import trio

    from trunkline.actors.maintenance.log_repair import rejoin

    aside = trio.run(rejoin, _with_log(data, config))
    typer.echo(f"The store of this machine is in {aside} now; remove it when nothing of it is missed.")
    typer.echo("Start the machine: it gets a copy of the data.")


def _alone() -> SettingsError:
    """The failure of a command for a server without a log."""
    return SettingsError("cluster_nats", "is not set for this server", "set it to have several machines")


def _with_log(data: str | None, config: Path | None) -> Settings:
    """The settings of a machine. Raises SettingsError."""
    settings = existing_directory(data, config, writes=True)
    if settings.cluster_nats is None:
        raise SettingsError(
            "cluster_nats", "is not set", "give the configuration of this machine with --config"
        )
    return settings


@cluster_app.command("try")
def try_command(
    data: Annotated[Path, typer.Option(help="The directory of the trial.")] = Path("trunkline-cluster"),
    port: Annotated[
        int,
        typer.Option(min=1, max=65_533, help="The port of the first machine; the others have the next two."),
    ] = 8080,
) -> None:
    """Run three machines and three NATS servers on this one, with the demo, until Ctrl+C. To see, not to keep data."""
    import trio

    from trunkline.http.cli.cluster_try import Trial, check_place, nats_server
    from trunkline.limits.extras import how_to_install

    check_place(data)
    program = nats_server()
    if program is None:
        raise SettingsError("cluster try", "needs the program nats-server", how_to_install("cluster"))
    trio.run(Trial(data, port, program).run)


def _state_of(machine: MachineLine, partitions: int) -> str:
    if not machine.is_there:
        return f"was not heard for {machine.silence_s:.0f} s"
    if not machine.serves:
        return f"follows, {machine.behind} behind"
    if partitions == 1:
        return f"serves, epoch {machine.epoch}"
    served = ", ".join(map(str, machine.owns))
    if len(machine.owns) == partitions:
        return f"serves all partitions, epoch {machine.epoch}"
    return f"serves {served} of {partitions} partitions, {machine.behind} behind with the others"


def _lines(status: ClusterStatus) -> list[str]:
    found = [f"Log {status.log_name}: it does not answer"]
    if status.log is not None:
        entries = status.log.last - status.log.first + 1
        found = [f"Log {status.log_name}: {entries} messages, {status.log.size_bytes} bytes"]
    for server in status.servers:
        state = "leads" if server.leads else "has all" if server.is_current else "is not heard, or behind"
        found.append(f"  NATS server {server.name}: {state}")
    found.append("Machines:")
    for each in status.machines:
        state = _state_of(each, status.partitions)
        found.append(f"  {each.name} at {each.address}: {state}")
    return found + [f"At risk: {risk}" for risk in status.risks]
