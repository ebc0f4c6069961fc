"""`trunkline serve`: options of the server, and what it prints at its start.

Imports the demo only for --demo.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from trunkline.http.cli.late import prepare_server_imports
from trunkline.http.cli.options import ConfigOption, DataOption, effective_settings, usable
from trunkline.http.hosting.terminal import announce, warn
from trunkline.limits.errors import SettingsError
from trunkline.limits.settings import ALL_ADDRESSES, Settings, service_variables

if TYPE_CHECKING:
    from trunkline.http.cli.demo import DemoClock
    from trunkline.http.hosting.sockets import MqttPort
    from trunkline.http.serve import RunningServer


def serve_command(
    data: DataOption = None,
    host: Annotated[str | None, typer.Option(help="The address to listen on (default: 127.0.0.1).")] = None,
    port: Annotated[
        int | None, typer.Option(help="The port to listen on, 0 for any (default: 8080).")
    ] = None,
    mqtt_port: Annotated[
        int | None,
        typer.Option(help="The port for MQTT, 0 for any (default: none, with --demo 1883 if it is free)."),
    ] = None,
    mqtt_tls_port: Annotated[
        int | None, typer.Option(help="The port for MQTT over TLS; 8883 is usual (default: none).")
    ] = None,
    limits: Annotated[
        str | None,
        typer.Option(metavar="off|FILE.toml", help="Disable the throttles, or override single limits."),
    ] = None,
    certfile: Annotated[
        str | None,
        typer.Option(metavar="FILE.pem", help="The certificate chain; with --keyfile, serves TLS."),
    ] = None,
    keyfile: Annotated[
        str | None, typer.Option(metavar="FILE.pem", help="The private key of the certificate.")
    ] = None,
    ca_certs: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.pem",
            help="The authorities of client certificates; clients are then asked for one.",
        ),
    ] = None,
    blobs: Annotated[
        str | None,
        typer.Option(
            metavar="s3://BUCKET/PREFIX|/FOLDER",
            help="Where the contents of files are kept (default: in the data directory).",
        ),
    ] = None,
    processes: Annotated[
        str | None,
        typer.Option(
            metavar="N|auto",
            help="The number of processes, auto for that of the cores (default: 1): one owns the data, the others "
            "serve the clients.",
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(metavar="fast|stock", help="The HTTP engine (default: fast); stock is for comparisons."),
    ] = None,
    config: ConfigOption = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Also run an application with simulated devices.")
    ] = False,
) -> None:
    """Serve a data directory until SIGTERM. On a first start the first user is created."""
    # The help needs nothing of the server.
    prepare_server_imports()
    import structlog
    import trio

    more = {
        "mqtt_port": mqtt_port,
        "mqtt_tls_port": mqtt_tls_port,
        "certfile": certfile,
        "keyfile": keyfile,
        "ca_certs": ca_certs,
        "processes": _count(processes),
        "engine": engine,
        "blobs": blobs,
    }
    settings = usable(effective_settings(config, limits, data_dir=data, host=host, port=port, **more))
    from trunkline.http.hosting.logs import configure_logging

    configure_logging(settings)
    if ignored := service_variables(os.environ):
        structlog.get_logger("trunkline.serve").warning(
            "ignored variables with which a container platform announces services", variables=ignored
        )
    if settings.host in ALL_ADDRESSES and settings.public_url is None:
        structlog.get_logger("trunkline.serve").warning(
            "links to files and in mails begin with an address at which nobody is reached; set public_url",
            host=settings.host,
        )
    if limits == "off":
        warn("THE THROTTLES ARE OFF. This is for load tests; never serve devices like this.")
    wanted = None
    if demo:
        from trunkline.http.cli.demo import demo_mqtt_port

        wanted = demo_mqtt_port(settings)
    if settings.cluster_nats is not None:
        from trunkline.actors.maintenance.joining import prepare_machine

        trio.run(prepare_machine, settings)
    from trunkline.http.cli.supervisor import process_count, supervise

    if process_count(settings) > 1:
        sys.exit(trio.run(partial(supervise, settings, demo=demo, wanted_mqtt_port=wanted)))
    announce, clock, settings = announcing(settings, demo=demo, wanted=wanted)
    from trunkline.http.serve import serve

    trio.run(partial(serve, settings, ready=announce, clock=clock, mqtt_port_if_free=wanted))


def _count(processes: str | None) -> int | None:
    """The number of processes; 0 for that of the cores."""
    if processes is None or processes == "auto":
        return None if processes is None else 0
    if not processes.isdecimal():
        raise SettingsError("processes", f"is {processes!r}", "give a number such as 4, or auto")
    return int(processes)


def announcing(
    settings: Settings, *, demo: bool, wanted: int | None
) -> tuple[Callable[[RunningServer], Awaitable[None]], DemoClock | None, Settings]:
    """What prints where a server is and runs the demo, the clock of that server, and its settings.

    `wanted` is the port for MQTT that the demo opens if it is free.
    """
    clock = None
    if demo:
        from trunkline.http.cli.demo import DemoClock, demo_settings

        clock = DemoClock()
        settings = demo_settings(settings)
    return partial(_announce_start, settings=settings, clock=clock, wanted=wanted), clock, settings


def announce_standby(settings: Settings, url: str, mqtt_ports: Sequence[MqttPort]) -> None:
    """Print that another machine owns the data, and where clients reach it through this one."""
    _announce_ports(settings, mqtt_ports)
    announce(f"Standby {settings.cluster_node}: {url} leads to the machine that serves the data")


def _announce_ports(settings: Settings, ports: Sequence[MqttPort]) -> None:
    for port in ports:
        announce(f"MQTT{' over TLS' if port.tls else ''}: {settings.host} port {port.number}")


async def _announce_start(
    server: RunningServer, *, settings: Settings, clock: DemoClock | None, wanted: int | None
) -> None:
    """Print the URL of the server and the first user, if one was created; then run the demo if it has a clock.

    The past of the demo comes before anybody knows how to log in. `wanted` is the port for MQTT that the demo opens if
    it is free.
    """
    if clock is not None and server.first_user is not None:
        from trunkline.http.cli.demo import live_past_on

        await live_past_on(server, clock)
    from trunkline.http.hosting.sockets import reached_here

    here = reached_here(server.url)
    announce(f"The console: {here}/console")
    first = server.first_user
    if first is not None and first.password is not None:
        announce(f"First user: {first.email}  password: {first.password}  (shown only now)")
    elif clock is not None:
        from trunkline.http.cli.demo import log_in_hint

        announce(log_in_hint(server))
    _announce_ports(settings, server.mqtt_ports)
    if wanted is not None and all(port.tls for port in server.mqtt_ports):
        announce(f"No MQTT: port {wanted} is in use. Choose another one with --mqtt-port.")
    announce(f"Trunkline serves {settings.data_dir} at {server.url} (the API: {here}/docs)")
    if clock is not None:
        from trunkline.http.cli.demo import run_demo_on

        await run_demo_on(server)
