"""One connection of a device with a link, from the handshake to its end.

Owns what is sent and received on it, and what may end it. Does not own what the device remembers (`link_device.py`).
"""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import Any, Final

import cbor2
import msgspec
import trio

from tests.simulation.access import Keys, Login
from tests.simulation.devices import Fleet
from tests.simulation.faults import Clock
from tests.simulation.limits import CALLS
from tests.simulation.link_device import Frame, LinkDevice
from tests.simulation.model import Broken
from tests.simulation.websocket import NO_CLOSE, WebSocket
from tests.simulation.wires import CUTS, Lost
from tests.simulation.world import World

_ANSWERS_S: Final = 45.0
"""So long a device waits for an acknowledgement before it gives the connection up."""
_SILENCE_S: Final = 150.0
"""So long it waits for a ping of the server."""
_WELCOME, _STORED, _REFUSAL, _COMMAND = range(4)
_PROTOCOLS: Final = {False: "trunkline.link.v1+cbor", True: "trunkline.link.v1+json"}
_RETRY: Final = frozenset({"Overloaded", "StorageFull", "Internal"})


class LinkConnection:
    """A connection. `heard` are the commands that came on it, in their order."""

    def __init__(self, world: World, device: LinkDevice, login: Login | None, chance: Random) -> None:
        self.world = world
        self.life = world.life
        self.device = device
        self.login = login
        self.socket = WebSocket(world.life.network.http.connect(), chance)
        self.heard: list[str] = []
        self.is_welcome = False
        self.is_over = False
        self.is_superseded = False
        self.is_left_behind = False
        """The device uses a newer one. It only waits for the end of this."""
        self._chance = chance
        self._text = chance.random() < 0.3
        self._last_command = -1
        self._acknowledged: list[tuple[str, int]] = []
        """Commands whose acknowledgement was sent, and how many commits had failed by then."""
        self._under_way: dict[int, Frame] = {}
        self._failed = world.failed_commits
        self._slept_s = world.virtual.slept_s
        self._began_s = world.virtual.now_s
        self._has_left = False
        self._sends = trio.Lock()
        self._throttle = device.meter.throttles["state"]

    @property
    def title(self) -> str:
        return f"link of {self.device.meter.id[-4:]}"

    @property
    def _was_away(self) -> bool:
        """Whether a process that serves the connection was away."""
        return self.life.was_away(self.socket.wire, self._began_s, with_home=True)

    async def live(self) -> None:
        """Connect, and take what comes until the connection ends."""
        world, chance, wire = self.world, self._chance, self.socket.wire
        if chance.random() < 0.5:
            pipe = chance.choice((wire.to_server, wire.to_client))
            pipe.cut_after(
                chance.choice((30, 150, 600, 1_500, 4_000)) + chance.randrange(60), chance.choice(CUTS)
            )
        fleet, keys = world.of(Fleet), world.of(Keys)
        with fleet.records.watched() as records, keys.book.watched() as opened:
            try:
                await self._exchange()
            except Lost:
                pass
            finally:
                self._end()
            if self.life.over or self._has_left or wire.was_cut:
                world.reached["a link was cut"] += bool(wire.was_cut)
                return
            self._check_end(
                may_be_gone=None in records.allowed(self.device.meter.id),
                may_be_closed=self.login is not None and opened.allowed(self.login.key) != {"active"},
            )

    async def _exchange(self) -> None:
        device, socket, world = self.device, self.socket, self.world
        token = world.token if self.login is None else self.login.token
        in_hello = self._chance.random() < 0.3
        path = f"{device.meter.path}/link"
        status = 0
        with trio.move_on_after(_ANSWERS_S):
            status = await socket.open(path, _PROTOCOLS[self._text], None if in_hello else token)
        if not status:
            self._give_up()
            return
        if status != 101:
            socket.code = status
            socket.wire.close()
            return
        hello: dict[str, Any] = {"session": device.session}
        if in_hello:
            hello["token"] = token
        await self._send_plain([0, hello])
        if self._chance.random() < 0.4:
            async with self._sends:
                await self._send_again()
        while True:
            message: bytes | None = None
            slept_s, pings = world.virtual.slept_s, socket.pings
            is_answered = self.is_welcome and not self._under_way
            with trio.move_on_after(_SILENCE_S if is_answered else _ANSWERS_S) as waits:
                message = await socket.receive()
            if self.life.over or self._has_left:
                return
            if waits.cancelled_caught:
                if world.virtual.slept_s > slept_s or (socket.pings > pings and is_answered):
                    continue  # the server could not answer, or had nothing to say
                self._give_up()
                return
            if message is None:
                return
            if self.is_left_behind:
                continue
            await self._take(msgspec.json.decode(message) if self._text else cbor2.loads(message))

    def _give_up(self) -> None:
        wire = self.socket.wire
        excused = wire.was_cut or wire.has_stalled or self.is_left_behind or self._was_away
        if not excused and self.world.virtual.slept_s == self._slept_s:
            raise Broken(f"{self.title}: nothing came for too long, not even a ping")
        self._has_left = True
        wire.abort()

    async def _take(self, frame: list[Any]) -> None:
        match frame:
            case [0, facts]:
                await self._welcomed(facts)
            case [1, n, *lane]:
                self._stored(n, backlog=bool(lane))
            case [2, n, kind, sentence, *more]:
                self._refused(n, kind, sentence, more[0] if more else {})
            case [3, number, name, *_]:
                await self._command(number, name)
            case _:
                raise Broken(f"{self.title}: {frame} is no frame of the server")

    # States.

    async def _welcomed(self, facts: dict[str, Any]) -> None:
        """Drop what is stored, and send all else again."""
        device, world = self.device, self.world
        if device.before is None:
            device.before = set(device.meter.commands.things)
        async with self._sends:
            for backlog, n in ((False, facts["n"]), (True, facts["backlogN"])):
                if n < device.acknowledged[backlog] and not device.was_refused:
                    raise Broken(
                        f"{self.title}: frame {device.acknowledged[backlog]} was acknowledged, "
                        f"and the welcome says that {n} is stored"
                    )
                if n > device.n:
                    raise Broken(f"{self.title}: frame {n} is said to be stored, and {device.n} was the last")
                for frame in [each for each in device.frames if each.backlog is backlog and each.n <= n]:
                    self._settle(frame, stored=True)
                    world.reached["a welcome said that a frame is stored"] += 1
            self.is_welcome = True
            world.note(f"{self.title}: welcome {facts['n']} {facts['backlogN']}")
            await self._send_again()

    async def _send_again(self) -> None:
        """Send what was not answered and is not under way on this connection, also before the welcome has come."""
        for frame in list(self.device.frames):
            if frame.n not in self._under_way:
                self.world.reached["a frame was sent again"] += 1
                if frame.change.became is not True:
                    frame.change.again()
                await self._send_frame(frame)

    async def report(self, chance: Random) -> None:
        """Send a new frame."""
        async with self._sends:
            if self.is_welcome and not self.is_over and not self._has_left:
                frame = self.device.next_frame(self.world, chance, text=self._text)
                self.device.frames.append(frame)
                with suppress(Lost):  # `live` sees it as well
                    await self._send_frame(frame)

    async def _send_frame(self, frame: Frame) -> None:
        """Send it in the form of this connection. It counts as a call until it is answered."""
        if frame.n not in self._under_way:
            self._under_way[frame.n] = frame
            self.world.open_calls += 1
        if not frame.backlog:
            frame.sent = self.world.of(Clock).read(self.world)
            self.device.meter.is_active(self.world, None)
            frame.passing = self._throttle.begin(self.world.virtual.monotonic_s())
        if frame.text is not self._text:
            plain = msgspec.json.decode(frame.data) if frame.text else cbor2.loads(frame.data)
            frame.data = msgspec.json.encode(plain) if self._text else cbor2.dumps(plain)
            frame.text = self._text
        await self.socket.send(frame.data, text=self._text)

    def _stored(self, n: int, *, backlog: bool) -> None:
        device = self.device
        if n > device.n:
            raise Broken(f"{self.title}: frame {n} is acknowledged, and {device.n} was the last")
        self.world.note(f"{self.title}: stored {n} {backlog}")
        for frame in [each for each in device.frames if each.backlog is backlog and each.n <= n]:
            self._settle(frame, stored=True)

    def _refused(self, n: int, kind: str, sentence: str, more: dict[str, Any]) -> None:
        device, world = self.device, self.world
        world.note(f"{self.title}: refused {n} {kind}")
        frame = next((each for each in device.frames if each.n == n), None)
        if frame is None:
            raise Broken(f"{self.title}: frame {n} is refused, and was answered before: {sentence}")
        device.was_refused = True
        bucket = more.get("bucket")
        self._settle(frame, stored=False, throttled=bucket == "send_state")
        if kind == "Internal":
            if self._failed == world.failed_commits:
                raise Broken(f"{self.title}: frame {n} is refused without a reason: {sentence}")
            world.reached["a frame was refused for a failed commit"] += 1
        elif kind == "StorageFull":
            world.number_at_failure = world.number
        elif kind == "TooManyRequests":
            world.reached["a frame was throttled"] += 1
        elif kind not in _RETRY and not (kind == "NotFound" and self._may_be_gone()):
            raise Broken(f"{self.title}: frame {n} is refused with {kind}: {sentence}")

    def _may_be_gone(self) -> bool:
        return None in self.world.of(Fleet).records.thing(self.device.meter.id).states

    def _settle(self, frame: Frame, *, stored: bool, throttled: bool = False) -> None:
        """It is over: stored, or refused."""
        device = self.device
        device.frames.remove(frame)
        if self._under_way.pop(frame.n, None) is not None:
            self.world.open_calls -= 1
        if not frame.backlog:
            is_new = (
                stored and not frame.is_repeated
            )  # otherwise it may have arrived on an earlier connection
            device.meter.is_active(self.world, frame.sent if is_new else None)
        if frame.passing is not None:
            # One that was stored before is acknowledged again, whether the throttle lets it pass or not.
            passed = False if throttled else True if stored and not frame.is_repeated else None
            least, most = self._throttle.end(frame.passing, self.world.virtual.monotonic_s(), passed=passed)
            frame.passing = None
            if passed and least >= CALLS:
                raise Broken(
                    f"{self.title}: frame {frame.n} passed after {least} calls, of which {CALLS} may pass"
                )
            if throttled and most < CALLS:
                raise Broken(f"{self.title}: frame {frame.n} is throttled after at most {most} calls")
        if stored:
            device.acknowledged[frame.backlog] = max(frame.n, device.acknowledged[frame.backlog])
            if frame.change.became is not True:
                frame.change.stored()
        elif frame.change.became is True:
            raise Broken(f"{self.title}: frame {frame.n} is refused, and a reader saw its states before")
        else:
            frame.change.refused()

    # Commands.

    async def _command(self, number: int, name: str) -> None:
        device, world = self.device, self.world
        world.note(f"{self.title}: command {number} {name}")
        if number <= self._last_command:
            raise Broken(f"{self.title}: command {number} came after {self._last_command}")
        if name not in device.meter.commands.things:
            raise Broken(f"{self.title}: the command {name} came, which nobody has sent")
        if name in device.finished:
            raise Broken(f"{self.title}: the command {name} was acknowledged, and came again")
        world.reached["a command came again"] += name in device.heard
        if device.before is not None:
            world.reached["a command waited for its link"] += not self.heard and name not in device.heard
        self._last_command = number
        self.heard.append(name)
        device.heard.add(name)
        if self._chance.random() < 0.8:
            self._acknowledged.append((name, world.failed_commits))
            await self._send_plain([4, number])

    def finish(self) -> None:
        """What was acknowledged on this connection is over, if nothing of it is under way any more."""
        if self.socket.wire.to_server.is_moving or self.life.has_under_way:
            return
        if self.world.quota is None and not self.is_over:
            done = (name for name, failed in self._acknowledged if failed == self.world.failed_commits)
            self.device.finished.update(done)
        self._acknowledged.clear()

    # The end.

    def lose_answers(self, chance: Random) -> None:
        """Let answers to what is under way not arrive. The server may take more before it notices, or not."""
        wire = self.socket.wire
        if not self._under_way:
            return
        if chance.random() < 0.5:
            wire.to_client.cut_after(chance.randrange(1, 12), chance.choice(CUTS))
        else:
            wire.has_stalled = True
            wire.to_client.die()

    def drop(self) -> None:
        """Leave without a word."""
        self._has_left = True
        self.socket.wire.abort()

    async def leave(self, chance: Random) -> None:
        self._has_left = True
        if chance.random() < 0.5:
            self.drop()
            return
        with suppress(Lost):
            await self.socket.close()

    async def _send_plain(self, frame: list[Any]) -> None:
        data = msgspec.json.encode(frame) if self._text else cbor2.dumps(frame)
        await self.socket.send(data, text=self._text)

    def _end(self) -> None:
        """What was not answered may be stored or not."""
        self.is_over = True
        self._forget_answers()
        self.socket.wire.close()

    def leave_behind(self) -> None:
        """The device uses a newer connection from now on: nothing of it arrives on this any more."""
        self.is_superseded = self.is_left_behind = True
        self.socket.wire.to_server.die()
        self._forget_answers()

    def _forget_answers(self) -> None:
        """Nobody waits for answers any more."""
        self.is_welcome = False
        world = self.world
        for frame in self._under_way.values():
            frame.is_repeated = True
            if frame.passing is not None:
                self.device.meter.is_active(world, None)
                self._throttle.end(frame.passing, world.virtual.monotonic_s(), passed=None)
                frame.passing = None
            world.unanswered.append(frame.change)
            if self.life is world.life:
                world.open_calls -= 1
        self._under_way.clear()

    def _check_end(self, *, may_be_gone: bool, may_be_closed: bool) -> None:
        """The server has ended the connection: there must be a reason."""
        code, wire = self.socket.code, self.socket.wire
        self.world.note(f"{self.title}: ended {code} {self.socket.reason}")
        failed = self.world.failed_commits > self._failed or self.world.quota is not None
        slept = self.world.virtual.slept_s > self._slept_s
        reasons = {
            401: may_be_closed or may_be_gone,
            404: may_be_gone,
            **dict.fromkeys((502, 503), self._was_away),
            NO_CLOSE: wire.has_stalled or self.is_left_behind or self._was_away,
            408: wire.has_stalled or self.is_left_behind,
            1011: failed,
            4401: may_be_closed or may_be_gone,
            4404: may_be_gone,
            4408: wire.has_stalled or self.is_left_behind or ("hello" in self.socket.reason and slept),
            4410: self.is_superseded,
            4503: failed or self.life.home_was_moved(self._began_s),
        }
        if not reasons.get(code):
            raise Broken(f"{self.title}: the server has ended it with {code} {self.socket.reason}")
        self.world.reached[f"a link ended with {code}"] += 1
