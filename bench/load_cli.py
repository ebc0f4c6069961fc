"""The commands that load a server, one for each scenario, with its own options and those common to all loads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated

import typer

from trunkline.bench.cli_run import EXIT_CODES, run_command, write_result
from trunkline.bench.errors import BenchError
from trunkline.bench.link_states import FORMS, Form
from trunkline.bench.options import Common, Devices, sign_in, with_common
from trunkline.bench.progress import ProgressBar
from trunkline.bench.report import output, print_result
from trunkline.bench.run import Scenario, run_scenario
from trunkline.bench.scenarios.arrays import ArraysScenario
from trunkline.bench.scenarios.commands import CommandsScenario
from trunkline.bench.scenarios.link import LinkScenario
from trunkline.bench.scenarios.link_connections import (
    IdleLinksScenario,
    LinkCommandsScenario,
    LinkStormScenario,
)
from trunkline.bench.scenarios.mixed import MixedScenario
from trunkline.bench.scenarios.mqtt import QOS, MqttScenario, MqttTopicScenario
from trunkline.bench.scenarios.mqtt_idle import MqttIdleScenario
from trunkline.bench.scenarios.mqtt_retained import MqttRetainedScenario
from trunkline.bench.scenarios.mqtt_storm import MqttStormScenario
from trunkline.bench.scenarios.queries import QueriesScenario
from trunkline.bench.scenarios.state import StateScenario
from trunkline.bench.scenarios.storm import StormScenario

NOT_OF_A_STORM = ("connections", "duration", "warmup", "rate", "ceiling")
"""Options that a storm does not have: they are for repeated calls, and a device of a storm makes one."""


def load_commands() -> Iterator[Callable[..., None]]:
    """The commands, each named like its function."""
    for make in (state, arrays, commands, mixed, queries):
        yield with_common(make, _run)
    yield with_common(storm, _run, without=NOT_OF_A_STORM)
    yield with_common(link, _run, without=("rate",))
    yield with_common(mqtt, _run, without=("rate",))


def state(devices: Devices = 1000) -> Scenario:
    """Single state posts: how many a second are acknowledged; everything is read back."""
    return StateScenario(devices=devices)


def arrays(
    devices: Devices = 1000,
    per_call: Annotated[
        list[int] | None,
        typer.Option(help="States a call; may be given several times [default: 10, 100, 1000]."),
    ] = None,
) -> Scenario:
    """Arrays of states, a stage for each size: acknowledged states a second; everything is read back."""
    return ArraysScenario(devices=devices, per_call=per_call or [10, 100, 1000])


def commands(
    devices: Annotated[int, typer.Option(help="Devices, each with an open command stream.", min=1)] = 1000,
    per_call: Annotated[
        int, typer.Option(help="Devices that one call commands; 1 uses the route of the single device.")
    ] = 1000,
) -> Scenario:
    """Commands to many open streams: deliveries a second and the time until arrival; each must arrive once."""
    return CommandsScenario(devices=devices, per_call=per_call)


def mixed(devices: Devices = 1000) -> Scenario:
    """Of 25 calls 20 post a state; the others read values, histories and lists, and send commands."""
    return MixedScenario(devices=devices)


def storm(
    devices: Annotated[int, typer.Option(help="Devices, each with two connections.", min=1)] = 2000,
) -> Scenario:
    """A whole fleet disconnects and reconnects at once: time until all are served, and nothing is lost."""
    return StormScenario(devices=devices)


def link(
    devices: Devices = 1000,
    links: Annotated[
        list[int] | None,
        typer.Option(help="Links; may be given several times [default: 1, 64, 1000].", min=1),
    ] = None,
    size: Annotated[
        list[int] | None,
        typer.Option(
            help="States a frame; may be given several times [default: 1, 10, 100, 1000].", min=1, max=10_000
        ),
    ] = None,
    form: Annotated[
        list[str] | None, typer.Option(help="rows or columns; may be given twice [default: both].")
    ] = None,
    rest: Annotated[bool, typer.Option(help="Also the same states over REST, for each size.")] = True,
    idle: Annotated[
        int | None, typer.Option(help="Instead: the memory of so many links without traffic.", min=1)
    ] = None,
    storm: Annotated[
        int | None, typer.Option(help="Instead: so many links that are cut and come back at once.", min=1)
    ] = None,
    commands: Annotated[
        int | None, typer.Option(help="Instead: so many links that get commands at once.", min=1, max=1000)
    ] = None,
    rounds: Annotated[int, typer.Option(help="Commands, with --commands.", min=1, max=100_000)] = 100,
) -> Scenario:
    """States in frames of the device link: acknowledged a second by size and form; all are read back or counted."""
    if (idle, storm, commands).count(None) < 2:
        raise BenchError("--idle, --storm and --commands exclude each other.")
    if idle is not None:
        return IdleLinksScenario(links=idle)
    if storm is not None:
        return LinkStormScenario(links=storm)
    if commands is not None:
        return LinkCommandsScenario(links=commands, rounds=rounds)
    forms: list[Form] = [known for known in FORMS if form is None or known in form]
    if form is not None and len(forms) < len(set(form)):
        raise BenchError(f"--form is {' or '.join(FORMS)}.")
    return LinkScenario(
        devices=devices,
        links=links or [1, 64, 1000],
        sizes=size or [1, 10, 100, 1000],
        forms=forms,
        rest=rest,
    )


def mqtt(
    devices: Devices = 1000,
    qos: Annotated[
        list[int] | None,
        typer.Option(help="0, 1 or 2; may be given several times [default: 0, 1, 2].", min=0, max=2),
    ] = None,
    rest: Annotated[bool, typer.Option(help="Also single states over REST.")] = True,
    fan_out: Annotated[
        bool, typer.Option("--fan-out", help="Instead: one client publishes to --connections subscribers.")
    ] = False,
    fan_in: Annotated[
        bool, typer.Option("--fan-in", help="Instead: --connections clients publish to one subscriber.")
    ] = False,
    storm: Annotated[
        bool,
        typer.Option("--storm", help="Instead: all --devices connect at once, each with a state."),
    ] = False,
    retained: Annotated[
        int | None,
        typer.Option(
            help="Instead: so many retained messages, which --connections subscribers read.",
            min=1,
            max=1_000_000,
        ),
    ] = None,
    idle: Annotated[
        bool,
        typer.Option("--idle", help="Instead: the memory of all --devices as clients without traffic."),
    ] = False,
    mqtt_port: Annotated[
        int,
        typer.Option(help="The port of MQTT; with TLS if the server's address has it.", min=1, max=65_535),
    ] = 1883,
) -> Scenario:
    """States over MQTT by QoS, fan-out, fan-in, many connections at once, retained messages; all that was acknowledged
    is read back."""
    if (fan_out, fan_in, storm, idle, retained is not None).count(True) > 1:
        raise BenchError("--fan-out, --fan-in, --storm, --idle and --retained exclude each other.")
    if retained is not None:
        return MqttRetainedScenario(messages=retained, mqtt_port=mqtt_port)
    levels = [level for level in QOS if qos is None or level in qos]
    if fan_out or fan_in:
        return MqttTopicScenario(qos=levels, is_fan_in=fan_in, mqtt_port=mqtt_port)
    if idle:
        return MqttIdleScenario(devices=devices, mqtt_port=mqtt_port)
    if storm:
        return MqttStormScenario(devices=devices, mqtt_port=mqtt_port)
    return MqttScenario(devices=devices, qos=levels, rest=rest, mqtt_port=mqtt_port)


def queries(
    devices: Devices = 100,
    states: Annotated[int, typer.Option(help="States stored of each device.", min=1, max=1_000_000)] = 2000,
) -> Scenario:
    """History and list queries, a stage for each kind; every answer is compared."""
    return QueriesScenario(devices=devices, states=states)


def _run(options: Common, scenario: Scenario) -> None:
    run_command(lambda: _load(options, scenario))


async def _load(options: Common, scenario: Scenario) -> int:
    console = output()
    session = await sign_in(options.url, options.email, options.password, options.token)
    result = await run_scenario(scenario, session, options.plan, ProgressBar())
    print_result(console, result)
    write_result(result, options.json, options.html)
    return EXIT_CODES[result.verdict]
