"""`trunkline cluster`: the machines of a server that has a log."""

from __future__ import annotations

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
    from trunkline.actors.core.runtime.machines import ClusterStatus
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
    import trio

    from trunkline.http.control_client import ask_server

    directory = Path(existing_directory(data, config).data_dir)
    told: list[Any] | None = trio.run(ask_server, directory, "cluster.status", {}, no_server_at(directory))
    if told is None:
        raise _alone()
    import msgspec

    from trunkline.actors.core.runtime.machines import ClusterStatus

    status = msgspec.convert(told, ClusterStatus)
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


def _lines(status: ClusterStatus) -> list[str]:
    from trunkline.actors.core.runtime.machines import epoch_name

    found = [f"Log {status.log_name}: it does not answer"]
    if status.log is not None:
        entries = status.log.last - status.log.first + 1
        found = [f"Log {status.log_name}: {entries} messages, {status.log.size_bytes} bytes"]
    for server in status.servers:
        state = "leads" if server.leads else "has all" if server.is_current else "is not heard, or behind"
        found.append(f"  NATS server {server.name}: {state}")
    found.append("Machines:")
    for each in status.machines:
        if not each.is_there:
            state = f"was not heard for {each.silence_s:.0f} s"
        else:
            epoch = epoch_name(each.epoch)
            state = f"serves, epoch {epoch}" if each.serves else f"follows, {each.behind} behind"
        found.append(f"  {each.name} at {each.address}: {state}")
    return found + [f"At risk: {risk}" for risk in status.risks]
