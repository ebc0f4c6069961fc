"""A demo: an application with simulated devices that report through the public API and execute commands.

Owns the traffic of the devices: creating them (or finding them again by name), sending a state every two seconds each,
and receiving commands. Does not own which there are (``demo_plant``) and how they behave (``demo_devices``).

One device uses the device link for both, and two use MQTT where the server has a port for it; the others post their
states and read a command stream, and two of them also publish every second state to a topic of the application. All
survive restarts of the server: they retry after growing pauses and resume after the last command received, and the
device on the link sends the states of the time without a connection later. A device that is deleted stops.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import msgspec
import trio

from trunkline.bench.client import Connection
from trunkline.bench.demo_device import DemoDevice, State
from trunkline.bench.demo_keys import replace_key
from trunkline.bench.demo_plant import GATEWAY, device_record, plant
from trunkline.bench.errors import ApiError, NotFound, TryLater, Unauthorized, WireError
from trunkline.bench.event_stream import open_events
from trunkline.bench.link_client import SUPERSEDED, LinkClient, LinkEnded
from trunkline.bench.link_frames import Command
from trunkline.bench.mqtt_client import MqttClient, open_mqtt
from trunkline.bench.pacing import Pacer
from trunkline.bench.session import Json, Session, device_path, record_id, refusal

DEMO_NAME = "Trunkline demo"
"""The name of the application; an existing one of this name is used."""

DEMO_ABOUT = "A cold-storage plant whose devices live in `trunkline demo`."

TRIED_DEVICE = "chiller-1"
"""The device of the calls to try."""

CURL_VARIABLE = "TOKEN"
"""The shell variable of ``curl_lines``. Not TRUNKLINE_...: a server started from the same shell would refuse an
unknown variable of such a name."""

LINKED = frozenset({"weather-mast"})
"""The devices that use the link."""

MQTT_DEVICES = frozenset({"pump-1", "meter-plant"})
"""The devices that use MQTT, if it is there."""

DEVICES_KEY = "MQTT key of the demo's devices"
"""The name of the access key with which they connect."""

PUBLISHED = frozenset({"freezer-2", "truck-1"})
"""The devices that also publish every second state to a topic."""

KEPT_STATES_MAX = 600
"""States that a device on the link keeps while the server cannot be reached."""

PERIOD_S = 2.0
"""Seconds between two states of a device: a quarter of the rate that the throttle allows."""

PAUSE_MIN_S, PAUSE_MAX_S = 0.5, 5.0
"""Seconds before a failed call is repeated: the first value, doubled after each failure up to the second."""


@dataclass(frozen=True, slots=True)
class DemoReady:
    """A running demo: the server's URL, the application, and the id of each device by name."""

    url: str
    application_id: str
    device_ids: Mapping[str, str]


async def run_demo(
    url: str,
    token: str,
    application_id: str | None = None,
    *,
    on_ready: Callable[[DemoReady], object] | None = None,
    on_event: Callable[[str], object] | None = None,
    linked: Set[str] = LINKED,
    mqtt: tuple[str, int] | None = None,
) -> None:
    """Run the demo until it is cancelled, or until all its devices are deleted.

    ``on_ready`` is called once, when the first state of every device is acknowledged. ``on_event`` is called
    with a line for each executed command and each interruption.
    ``linked`` names the devices on the link; ``mqtt`` is the host and port at which the server speaks MQTT without TLS,
    if it does. Raises ApiError if the token is refused.
    """
    say = on_event or (lambda _line: None)
    models = plant(time.time())
    session = Session(url, token=token, connections_max=len(models))
    try:
        found_id, ids = await ensure_plant(session, models, application_id)
        waiting = set(ids)

        def first_state(name: str) -> None:
            waiting.discard(name)
            if not waiting and on_ready is not None:
                on_ready(DemoReady(url, found_id, ids))

        outage = _Outage(say)
        over_mqtt = None if mqtt is None else await _mqtt_login(session, mqtt, found_id, ids)
        async with trio.open_nursery() as nursery:
            for model in models:
                make: Callable[..., _Device] = _LinkedDevice if model.name in linked else _Device
                if over_mqtt is not None and model.name in MQTT_DEVICES:
                    make = partial(_MqttDevice, over_mqtt)
                device = make(session, model, device_path(found_id, ids[model.name]), say, outage)
                nursery.start_soon(device.run, first_state)
    finally:
        session.close()


class _MqttLogin(NamedTuple):
    """Where and with which access key devices connect."""

    address: tuple[str, int]
    key: tuple[str, str]


async def _mqtt_login(
    session: Session, address: tuple[str, int], application_id: str, ids: Mapping[str, str]
) -> _MqttLogin:
    """The login of the devices that use MQTT: their key admits no others."""
    wanted: Json = {
        "name": DEVICES_KEY,
        "description": "The devices of the demo that use MQTT connect with it. Each start replaces it.",
        "deviceIds": [ids[name] for name in sorted(MQTT_DEVICES)],
    }
    return _MqttLogin(address, await replace_key(session, application_id, wanted))


async def ensure_plant(
    session: Session, models: Sequence[DemoDevice], application_id: str | None = None
) -> tuple[str, dict[str, str]]:
    """Find or create the application and the devices; return its id, and theirs by name."""
    found_id = application_id or await session.find_application(DEMO_NAME)
    if found_id is None:
        found_id = await session.create_application(DEMO_NAME, DEMO_ABOUT)
    ids = {name: record_id(record) for name, record in (await session.find_devices(found_id)).items()}
    missing = [model for model in models if model.name not in ids]
    # The gateway comes first, as its peripherals name it.
    for new in (
        [one for one in missing if one.name == GATEWAY],
        [one for one in missing if one.name != GATEWAY],
    ):
        made = await session.create_devices(found_id, [device_record(model, ids) for model in new])
        ids |= dict(zip((model.name for model in new), made, strict=True))
    return found_id, {model.name: ids[model.name] for model in models}


class _Device:
    """One device of the demo."""

    def __init__(
        self, session: Session, model: DemoDevice, path: str, say: Callable[[str], object], outage: _Outage
    ) -> None:
        self.session = session
        self.model = model
        self.path = path
        self.say = say
        self.outage = outage
        self.acknowledged = False

    async def run(self, first_state: Callable[[str], None]) -> None:
        """Report and execute commands until cancelled, or until the device or its application is deleted."""
        try:
            await self._live(first_state)
        except* NotFound:
            self.outage.end(self.model.name)
            self.say(f"{self.model.name} was deleted and stops")

    async def _live(self, first_state: Callable[[str], None]) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._obey)
            await self._report(first_state)

    async def _report(self, first_state: Callable[[str], None]) -> None:
        pacer, backoff = Pacer(), _Backoff()
        next_s = trio.current_time()
        publishes, is_next = self.model.name in PUBLISHED, True
        async with Connection(self.session.origin, token=self.session.token) as connection:
            while True:
                await trio.sleep_until(max(next_s, pacer.next_s))
                now_s = trio.current_time()
                # After a pause the device continues from now; missed states are not sent later.
                next_s = max(next_s + PERIOD_S, now_s + PERIOD_S / 2)
                state = self.model.state(time.time())
                try:
                    body = msgspec.json.encode({"data": state})
                    response = await connection.request("POST", f"{self.path}/state", body)
                    pacer.learn(response, trio.current_time())
                    if response.status >= 400:
                        raise refusal(response)
                    if publishes and is_next:
                        await self._publish(connection, state)
                    is_next = not is_next
                except (WireError, ApiError) as problem:
                    await self._after(problem, backoff)
                    continue
                backoff.reset()
                self._reached(first_state)

    async def _publish(self, connection: Connection, state: State) -> None:
        """Publish a state to the topic of the device."""
        application = self.path.partition("/devices/")[0]
        message = {"topic": f"plant/{self.model.name}", "message": msgspec.json.encode(state).decode()}
        body = msgspec.json.encode(message)
        response = await connection.request("POST", f"{application}/mqttPublishMessage", body)
        # A message that the throttle refuses is left out: the next one comes soon.
        if response.status >= 400 and response.status != 429:
            raise refusal(response)

    def _reached(self, first_state: Callable[[str], None]) -> None:
        """A state was acknowledged."""
        self.outage.end(self.model.name)
        if not self.acknowledged:
            self.acknowledged = True
            first_state(self.model.name)

    async def _obey(self) -> None:
        backoff, last_id = _Backoff(), ""
        path = f"{self.path}/commandStream?keepAliveInterval=2"
        while True:
            try:
                async with open_events(self.session.url, path, self.session.token, last_id=last_id) as events:
                    backoff.reset()
                    async for event in events:
                        last_id = event.id
                        if event.event == "deviceCommand":
                            self._carry_out(event.data)
            except (WireError, ApiError) as problem:
                await self._after(problem, backoff)
            else:
                await trio.sleep(backoff.next())

    def _carry_out(self, data: str) -> None:
        try:
            command = msgspec.json.decode(data)
            name, payload = str(command["name"]), command.get("payload")
        except (msgspec.DecodeError, KeyError, TypeError, AttributeError):
            self.say(f"{self.model.name}: an invalid command: {data[:80]}")
            return
        self._tell(name, payload)

    def _tell(self, name: str, payload: object) -> None:
        """Let the device execute a command, and say what it did."""
        done = self.model.obey(name, payload, time.time())
        known = ", ".join(f"{one} {example}" for one, example in self.model.commands.items()) or "none"
        self.say(f"{self.model.name}: {name}: {done or f'not understood; it knows {known}'}")

    async def _after(self, problem: Exception, backoff: _Backoff) -> None:
        """Wait after a temporary failure; raise a permanent one."""
        if isinstance(problem, (NotFound, Unauthorized)):
            raise problem
        if isinstance(problem, ApiError) and not isinstance(problem, TryLater) and problem.status < 500:
            raise problem
        pause_s = backoff.next()
        if isinstance(problem, TryLater) and problem.retry_after_s is not None:
            pause_s = max(pause_s, problem.retry_after_s)
        self.outage.begin(self.model.name, problem)
        await trio.sleep(pause_s)


class _LinkedDevice(_Device):
    """A device with a link, over which it sends its states and receives its commands."""

    async def _live(self, first_state: Callable[[str], None]) -> None:
        client = LinkClient(
            self.session.url,
            self.path,
            self.session.token or "",
            on_command=self._received,
            on_stored=lambda _stored: self._reached(first_state),
            on_interrupted=lambda problem: self.outage.begin(self.model.name, problem),
        )
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._send_states, client)
            try:
                await client.run()
            except LinkEnded as ended:
                if ended.code == SUPERSEDED:
                    self.say(f"{self.model.name} has another link and stops")
                    nursery.cancel_scope.cancel()
                    return
                # A call says in the words of the API what has ended: the device, or the token.
                await self.session.call("GET", self.path)
                raise

    async def _send_states(self, client: LinkClient) -> None:
        while True:
            if len(client.queue) < KEPT_STATES_MAX:
                await client.send_state(self.model.state(time.time()), time.time_ns() // 1_000_000)
            await trio.sleep(PERIOD_S)

    def _received(self, command: Command) -> None:
        self._tell(command.name, command.payload)


class _MqttDevice(_Device):
    """A device that sends its states and receives its commands over MQTT, with QoS 1."""

    def __init__(self, login: _MqttLogin, *more: Any) -> None:
        super().__init__(*more)
        self._login = login

    async def _live(self, first_state: Callable[[str], None]) -> None:
        backoff, id = _Backoff(), self.path.rpartition("/")[2]
        while True:
            try:
                async with open_mqtt(
                    self._login.address,
                    id,
                    self._login.key,
                    f"losant/{id}/command",
                    on_stored=lambda: self._reached(first_state),
                    on_refused=lambda reason: self.say(f"{self.model.name}: a state was refused: {reason}"),
                    on_message=lambda payload: self._carry_out(payload.decode("utf-8", "replace")),
                ) as client:
                    backoff.reset()
                    await self._send_states(client, f"losant/{id}/state")
            except WireError as problem:
                await self._after(problem, backoff)
            try:
                # A call says in the words of the API what has ended: the device, or the token.
                await self.session.call("GET", self.path)
            except (WireError, ApiError) as problem:
                await self._after(problem, backoff)

    async def _send_states(self, client: MqttClient, topic: str) -> None:
        while True:
            body = msgspec.json.encode({"data": self.model.state(time.time())})
            await client.publish(topic, body)
            await client.read_until(trio.current_time() + PERIOD_S)


class _Outage:
    """Prints one line when the server cannot be reached and one when all devices reach it again."""

    def __init__(self, say: Callable[[str], object]) -> None:
        self._say = say
        self._cut_off: set[str] = set()

    def begin(self, name: str, problem: Exception) -> None:
        """A device could not reach the server."""
        if not self._cut_off:
            self._say(f"{problem} The devices keep trying.")
        self._cut_off.add(name)

    def end(self, name: str) -> None:
        """A state of the device was acknowledged, or the device was deleted."""
        if name in self._cut_off:
            self._cut_off.discard(name)
            if not self._cut_off:
                self._say("All devices reach the server again.")


class _Backoff:
    """A pause that doubles with each failure."""

    def __init__(self) -> None:
        self._pause_s = PAUSE_MIN_S

    def next(self) -> float:
        """Return the current pause in seconds and double it for the next failure."""
        pause_s = self._pause_s
        self._pause_s = min(pause_s * 2, PAUSE_MAX_S)
        return pause_s

    def reset(self) -> None:
        """Start again with the shortest pause."""
        self._pause_s = PAUSE_MIN_S


def curl_lines(ready: DemoReady) -> list[str]:
    """Three calls to try, the token in $TOKEN: read a state, send a command, watch its effect."""
    device = f"{ready.url.rstrip('/')}/applications/{ready.application_id}/devices/"
    device += ready.device_ids[TRIED_DEVICE]
    authorized = f'curl -s -H "Authorization: Bearer ${CURL_VARIABLE}"'
    command = '{"name": "setTarget", "payload": {"value": 3}}'
    return [
        f"{authorized} {device}/state",
        f"{authorized} -H 'Content-Type: application/json' -d '{command}' {device}/command",
        f"{authorized} -N {device}/stateStream",
    ]
