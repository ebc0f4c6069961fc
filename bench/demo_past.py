"""What happened in the demo before it was looked at: a week of states, and what people did in it.

`live_past` calls the API of a server whose clock it moves through the week, so that alarms, runs, commands, rows and
entries of the audit log come about as ever, at their times; other states come as backlogs. Does not own what happened
when (`demo_incident`).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Final

import trio

from trunkline.bench.demo import ensure_plant
from trunkline.bench.demo_device import DAY_S, HOUR_S, DemoDevice, State
from trunkline.bench.demo_flows import BUTTON, FLOW, LOG_TABLE, log_flow
from trunkline.bench.demo_incident import COMPRESSOR, FREEZER, REPORT_S, STANDBY, Incident, incident_before
from trunkline.bench.demo_plant import LOW_BATTERY, plant
from trunkline.bench.demo_rules import ALARM_GROUP, FREEZER_LIMIT, FREEZER_RULE, RULES, tripped_rule
from trunkline.bench.errors import BenchError
from trunkline.bench.history import to_iso
from trunkline.bench.session import Json, Session, device_path, record_id

WEEK_S: Final = 7 * DAY_S
_BUILT_S: Final = 8 * DAY_S
"""So long ago the devices, the rules and the workflows were created."""

_STEPS_S: Final = ((WEEK_S, 1800), (DAY_S, 600), (3 * HOUR_S, 120))
"""From so long ago on there is a state in each so many seconds."""

_LOW_S: Final = 0.7 * DAY_S
"""So long ago the battery was found to be low."""

_SENT_S: Final = 3600
"""So long ago all other states arrived, which is before the time that the chart of the overview shows."""

_SEEN: Final[Json] = {
    "state": "acknowledged",
    "comment": f"{COMPRESSOR} has tripped: its pressure is too high. I start {STANDBY}.",
}
_MENDED: Final[Json] = {
    "comment": f"Leaves had blocked the condenser of {COMPRESSOR}. It is clean, and runs again. No goods were lost.",
}
_READ: Final[Json] = {
    "level": "info",
    "subject": "The meters were read",
    "message": "For the invoice of the month.",
}
_DUE: Final[Json] = {
    "level": "info",
    "subject": "Maintenance of pump-1 is due",
    "message": "It has run for 4000 hours.",
}


async def live_past(url: str, token: str, move: Callable[[float], object]) -> Incident:
    """Live through the week before now on a server that has no demo yet; `move` sets its clock. Raises BenchError.

    The clock goes back once, at the beginning, and is where it was at the end.
    """
    now_s = time.time()
    incident = incident_before(now_s)
    models = plant(now_s, incident)
    session = Session(url, token=token)
    try:
        move(now_s - _BUILT_S)
        application_id, ids = await ensure_plant(session, models)
        week = _Week(session, application_id, ids, {model.name: model for model in models}, move)
        await week.set_up()
        await week.have_event(now_s - 5.5 * DAY_S, "meter-plant", _READ, {"state": "resolved"})
        await week.have_incident(incident)
        due = {"state": "acknowledged", "comment": "It is ordered for Monday."}
        await week.have_event(now_s - 1.4 * DAY_S, "pump-1", _DUE, due)
        move(now_s - _LOW_S)
        await week.report(LOW_BATTERY, now_s - _LOW_S)
        await week.until(week.open_alarms, 1)
        await week.until(week.rows, 2)
        move(now_s - _SENT_S)
        await week.send_states(now_s)
    finally:
        move(time.time())
        session.close()
    return incident


class _Week:
    """The plant in the past week."""

    def __init__(
        self,
        session: Session,
        application_id: str,
        ids: Mapping[str, str],
        models: Mapping[str, DemoDevice],
        move: Callable[[float], object],
    ) -> None:
        self._session, self._application_id, self._ids = session, application_id, ids
        self._models, self._move = models, move
        self._flow = ""

    async def call(self, method: str, path: str, body: object = None) -> Any:
        return await self._session.call(method, f"/applications/{self._application_id}{path}", body)

    async def set_up(self) -> None:
        """Create what the plant had before anything happened."""
        for rule in RULES:
            await self.call("POST", "/alarm-rules", rule)
        self._flow = record_id(await self.call("POST", "/flows", FLOW))
        table = record_id(await self.call("POST", "/data-tables", LOG_TABLE))
        await self.call("POST", "/flows", log_flow(table))

    async def report(self, name: str, at_s: float) -> State:
        """Let a device report what it does at this moment."""
        path = device_path(self._application_id, self._ids[name], "/state")
        state = self._models[name].state(at_s)
        await self._session.call("POST", path, {"data": state, "time": _iso(at_s)})
        return state

    async def send_states(self, now_s: float) -> None:
        """Send the states of the week, as backlogs, which take nothing from the throttle of live states.

        They are computed in threads: the demo may run in the event loop of a server.
        """

        async def send(name: str) -> None:
            states = await trio.to_thread.run_sync(list, past_states(self._models[name], now_s))
            path = device_path(self._application_id, self._ids[name], "/state")
            await self._session.call("POST", path, states, query={"backlog": "true"})

        async with trio.open_nursery() as nursery:
            for name in self._models:
                nursery.start_soon(send, name)

    async def have_event(self, at_s: float, device: str, event: Json, update: Json) -> None:
        """Let somebody write an event, and change it an hour later."""
        self._move(at_s)
        made = await self.call("POST", "/events", {**event, "deviceId": self._ids[device]})
        self._move(at_s + 3600)
        await self.call("PATCH", f"/events/{made['id']}", update)

    async def have_incident(self, incident: Incident) -> None:
        """The compressor trips, the freezer becomes warm, somebody starts the standby, and the freezer becomes cold."""
        await self._reports_of_machines(incident.began_s - 60)
        await self._reports_of_machines(incident.began_s)
        at_s = cold_s = incident.began_s
        while at_s < incident.seen_s:
            if await self._temperature(at_s) <= FREEZER_LIMIT:
                cold_s = at_s
            elif at_s - cold_s >= FREEZER_RULE["durationSeconds"] + REPORT_S:
                await self.until(self.open_alarms, 1)
                await self.until(self.rows, 1)
            at_s += REPORT_S
        (alarm,) = (await self.call("GET", "/alarms"))["items"]
        event = f"/events/{alarm['eventId']}"
        self._move(incident.seen_s)
        await self.call("PATCH", event, _SEEN)
        self._move(incident.standby_s)
        await self.call("POST", f"/flows/{self._flow}/virtualButton", {"key": f"{self._flow}-{BUTTON}"})
        await self.until(self._commands, 1)
        await self._reports_of_machines(incident.standby_s)
        while at_s < incident.over_s:
            if await self._temperature(at_s) < FREEZER_LIMIT - FREEZER_RULE["condition"]["hysteresis"]:
                await self.until(self.open_alarms, 0)
            at_s += REPORT_S
        self._move(incident.repaired_s)
        await self._reports_of_machines(incident.repaired_s)
        path = device_path(self._application_id, self._ids[STANDBY], "/command")
        await self._session.call("POST", path, {"name": "switch", "payload": {"on": False}})
        await self.call("PATCH", event, _MENDED)
        self._move(incident.repaired_s + 1200)
        group = record_id(await self.call("POST", "/alarm-groups", ALARM_GROUP))
        await self.call("POST", "/alarm-rules", tripped_rule(group))

    async def _temperature(self, at_s: float) -> float:
        """Let the freezer report its temperature, and return it."""
        self._move(at_s)
        return float((await self.report(FREEZER, at_s))["temperature"])

    async def _reports_of_machines(self, at_s: float) -> None:
        self._move(at_s)
        for name in (COMPRESSOR, STANDBY):
            await self.report(name, at_s)

    async def open_alarms(self) -> int:
        """How many alarms are open."""
        return int((await self.call("GET", "/alarms"))["totalCount"])

    async def rows(self) -> int:
        """How many alarms the workflow has noted."""
        tables = (await self.call("GET", "/data-tables"))["items"]
        return int((await self.call("GET", f"/data-tables/{record_id(tables[0])}/rows"))["totalCount"])

    async def _commands(self) -> int:
        path = device_path(self._application_id, self._ids[STANDBY], "/command")
        return len(await self._session.call("GET", path))

    async def until(self, count: Callable[[], Awaitable[int]], wanted: int) -> None:
        """Wait for what follows from a call, before the clock moves on."""
        for _ in range(3000):
            if await count() == wanted:
                return
            await trio.sleep(0.01)
        raise BenchError(f"The past of the demo came to a halt: {count.__name__} is not {wanted}.")


def past_states(model: DemoDevice, now_s: float) -> Iterator[Json]:
    """The states of a week, which are the closer together the newer they are."""
    ends = [*(ago_s for ago_s, _ in _STEPS_S[1:]), 0.0]
    for (ago_s, step_s), end_s in zip(_STEPS_S, ends, strict=True):
        at_s = (now_s - ago_s) // step_s * step_s + step_s
        while at_s <= now_s - max(end_s, 1):
            yield {"time": _iso(at_s), "data": model.state(at_s)}
            at_s += step_s


def _iso(at_s: float) -> str:
    return to_iso(round(1000 * at_s))
