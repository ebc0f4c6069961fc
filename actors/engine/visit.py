"""What a node is given: its visit, and the run that the visit belongs to.

Owns the state of one run. Does not own the order of visits (`executor.py`) nor what a node does (`nodes/`).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, NamedTuple, Protocol

import trio

from trunkline.actors.core.formulas.values import UNDEFINED
from trunkline.actors.core.records.mandate import Mandates
from trunkline.actors.core.runtime.letting_go import let_go
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.scripts.pool import ScriptResult
from trunkline.actors.core.values.structs import Message
from trunkline.actors.engine.branch_memory import BranchMemory
from trunkline.actors.engine.copies import copied, size_of
from trunkline.actors.engine.errors import NodeError
from trunkline.actors.engine.share import Share
from trunkline.actors.engine.snapshots import Snapshots
from trunkline.actors.engine.world import World

PATH_MAX: Final = 1_000
"""Steps of a run that are kept."""
PROGRAM_SHIFT: Final = 20
"""A definition has fewer nodes than 2**20; the number of the program stands above them."""
NOTES_MAX: Final = 100
"""Different notes that a run keeps; a note that is made again is counted."""
NOTE_CHARS_MAX: Final = 300
DEBUG_MESSAGES_MAX: Final = 1_000
"""Messages of debug nodes that a run keeps."""
DEBUG_BYTES_MAX: Final = 64 * 1024
"""About the bytes as JSON of what they tell."""
_NOT_TOLD: Final = (
    f"This message is left out: those of a run are at most {DEBUG_MESSAGES_MAX}, with {DEBUG_BYTES_MAX // 1024} KiB in "
    "all. Tell a part of the payload only."
)


class Node(NamedTuple):
    """A node, and for each of its outputs the indexes of the nodes that follow."""

    id: str
    type: str
    label: str
    step: NodeStep
    outputs: tuple[tuple[int, ...], ...]
    is_last: bool
    """Whether no node follows."""


class Problem(NamedTuple):
    """Why a node cannot run, or what it ignores."""

    node: int
    message: str


class Program(NamedTuple):
    """A definition that is ready to be run. `starts` has for each trigger the indexes of the first nodes."""

    nodes: tuple[Node, ...]
    starts: tuple[tuple[int, ...], ...]
    flow: str = ""
    """The id of the workflow or the custom node that it is the definition of."""
    mandates: Mandates = ()
    """In whose name it is run."""


class Bounds(NamedTuple):
    """How much one run may do."""

    steps: int
    """Visits of nodes."""
    loop_items: int
    payload_bytes: int


Step = tuple[int, int, int, int]
"""One visit: the number of the program in `Run.programs`, as custom nodes have their own, the index of the node, the
output it chose, and its time in microseconds. A plain tuple, because one is made for each visit."""


class Debugged(NamedTuple):
    """What a debug node tells."""

    node: int
    level: str
    message: str
    value: Any
    program: int = 0


class FindProgram(Protocol):
    """Finds a custom node, compiled."""

    def __call__(self, flow: bytes, version: str | None, /) -> CustomNode | None:
        """None if the application has no such custom node, or it has no such version."""


class CustomNode(NamedTuple):
    """A custom node: its program, the first nodes, the globals, and its configuration."""

    program: Program
    start: int
    globals: dict[str, Any]
    config: dict[str, Any]


class CallScript(Protocol):
    """Runs a script with a value, in the name of an application."""

    async def __call__(self, script: str, value: Any, /) -> ScriptResult:
        """Raises `ScriptError`."""


Asked = tuple[tuple[str, str], ...]
"""Operations that a node performs, each with its access."""

Judge = Callable[[Mandates, Asked], None]
"""Raises `Forbidden` unless the authors may perform operations in the application of a run."""


@dataclass(slots=True)
class Run:
    """One run. Its clock and its random numbers are given, so that a second run of the same kind decides alike."""

    bounds: Bounds
    now_ms: int
    seed: int
    call_script: CallScript
    identity: dict[str, Any]
    """What nodes may know of the workflow: applicationId, flowId, and others as they stand in the payload."""
    programs: list[Program]
    """The program that is run, and those of the custom nodes that were visited."""
    opened_world: World | None = None
    open_world: Callable[[], World] | None = None
    """Makes the world at the first use, since few runs need any."""
    find_program: FindProgram | None = None
    application_globals: dict[str, Any] = field(default_factory=dict)
    share: Share = field(default_factory=Share)
    deadline_s: float = math.inf
    """By the clock of the event loop."""
    has_waited: bool = False
    """Whether others may have changed anything since the run began."""
    steps: int = 0
    paths_completed: int = 0
    path: list[Step] = field(default_factory=list)
    """The first `PATH_MAX` steps."""
    debugged: list[Debugged] = field(default_factory=list)
    notes: dict[tuple[int, int, str], int] = field(default_factory=dict)
    """How often a node, by program and index, has ignored something, by the sentence that says what."""
    judge: Judge | None = None
    """Judges what the authors may do; without one, they may do everything."""
    until_readable: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint
    """Returns when it can be read what authors may do."""
    authors: list[Mandates] = field(default_factory=list)
    """In whose name the node is visited: the authors of the workflow, then those of the custom nodes that it is in."""
    _random: Random | None = None
    snapshots: Snapshots | None = None
    """The payload after each step, in a dry run."""
    owner: bytes = b""
    """Who is charged for what the run uses of the server."""
    memory: BranchMemory = field(default_factory=BranchMemory)
    """Counts the payloads of branches that wait."""
    debug_bytes_left: int = DEBUG_BYTES_MAX

    @property
    def world(self) -> World | None:
        """What nodes reach outside of the run; None where there is no server at hand."""
        if self.opened_world is None and self.open_world is not None:
            self.opened_world = self.open_world()
        return self.opened_world

    def check(self, asked: Asked) -> None:
        """Raise `Forbidden` unless all authors may perform these operations now."""
        if self.judge is not None:
            for mandates in self.authors:
                if mandates:
                    self.judge(mandates, asked)

    @property
    def random(self) -> Random:
        """The random numbers of the run. Made at the first use, since few runs need any."""
        if self._random is None:
            self._random = Random(self.seed)  # noqa: S311 - a run must be repeatable
        return self._random


class Capped(NamedTuple):
    """How one pass of a loop ended: whether the loop ends as well, what is mapped, and the payload.

    Or how a custom node ended: its result, and the output that follows.
    """

    is_break: bool
    value: Any
    payload: Any
    output: int = 0
    names_value: bool = True
    """Whether the cap says what is mapped; else the loop does."""


class Visit:
    """The visit of a node, on one path through the program. Steps change `payload` in place, or replace it.

    The visits of one walk are the same object, one after the other.
    """

    __slots__ = (
        "call",
        "capped",
        "depth",
        "has_grown",
        "node",
        "payload",
        "program",
        "progress",
        "run",
        "walk",
    )

    def __init__(self, run: Run, program: int, depth: int, walk: Walk, call: CallProgram) -> None:
        self.run = run
        self.payload: Any = None
        self.walk = walk
        """Runs a part of the program within a node, such as the body of a loop."""
        self.call = call
        """Runs another program within a node."""
        self.program = program
        self.depth = depth
        """How many loops and custom nodes are around it."""
        self.node = -1
        self.capped: Capped | None = None
        self.has_grown = False
        """Whether the node has put something large into the payload, whose size is to be looked at."""
        self.progress: Any = None
        """What a node has done already that is not to be done again if its work is begun anew, in terms of the node."""

    @property
    def world(self) -> World:
        """What the node reaches outside of the run. Raises `NodeError` where there is no server at hand."""
        world = self.run.world
        if world is None:
            raise NodeError(
                "NotInDryRun", "This node needs a server, and here is none; give a stub for the node."
            )
        return world

    @property
    def place(self) -> int:
        """The node among those of all programs of the run."""
        return self.program << PROGRAM_SHIFT | self.node

    @property
    def is_last(self) -> bool:
        """Whether nothing uses the payload after this visit."""
        return not self.depth and self.run.programs[self.program].nodes[self.node].is_last

    def state_name(self, id: str) -> str:
        """What distinguishes what the node keeps between runs: the node, and an id that its configuration gives."""
        program = self.run.programs[self.program]
        node = program.nodes[self.node].id
        return f"{program.flow} {len(node)} {node} {id}"

    async def ask(self, ref: Ref, message: Message) -> Any:
        """Have an effect inside, once also across a crash; return the actor's answer in plain data."""
        return await self.world.ask(self.place, ref, message)

    async def ask_flow(self, message: Message) -> Any:
        """The same, of the workflow that is run."""
        world = self.world
        return await self.ask(Ref("flow", world.application, world.flow), message)

    async def read(self, message: Message) -> Any:
        """Read as a caller of the API does."""
        return await self.world.read(message)

    def new_id(self) -> bytes:
        """The id of a record that this visit creates; the same one if the run is repeated."""
        digest = hashlib.blake2b(self.world.key(self.place).encode(), digest_size=8).digest()
        return (self.run.now_ms // 1000 & 0xFFFFFFFF).to_bytes(4, "big") + digest

    def tell(self, level: str, message: str, value: Any) -> None:
        """Tell who watches the workflow. From the first message on that is beyond the bounds they are left out."""
        run = self.run
        if len(run.debugged) < DEBUG_MESSAGES_MAX and run.debug_bytes_left >= 0:
            run.debug_bytes_left -= size_of(value, run.debug_bytes_left) + len(message)
            if run.debug_bytes_left >= 0:
                value = value if self.is_last else copied(value)
                run.debugged.append(Debugged(self.node, level, message, value, self.program))
                return
        self.note(_NOT_TOLD)

    def note(self, message: str) -> None:
        """Note in the record of the run that the node ignores something of its settings or its payload."""
        notes, key = self.run.notes, (self.program, self.node, message[:NOTE_CHARS_MAX])
        if key in notes or len(notes) < NOTES_MAX:
            notes[key] = notes.get(key, 0) + 1

    def put(self, path: Any, value: Any) -> None:
        """Set a value in the payload; `path` None is a node without a result path."""
        if path is not None:
            let_go(path.get(self.payload))
            self.payload = path.set(self.payload, value)

    def put_or_remove(self, path: Any, value: Any) -> None:
        """The same; UNDEFINED removes what is there."""
        if value is not UNDEFINED:
            self.put(path, value)
        elif path is not None:
            let_go(path.get(self.payload))
            self.payload = path.delete(self.payload)


class Walk(Protocol):
    """Runs a part of a program to its end."""

    async def __call__(self, visit: Visit, output: int, payload: Any) -> Capped | None:
        """Run what follows an output of the visited node; return how the pass ended, None without a cap."""


class CallProgram(Protocol):
    """Runs a program to its end."""

    async def __call__(self, node: CustomNode, payload: Any) -> Capped | None:
        """Run it from its start with a payload of its own; return how it ended, None without a cap."""


NodeStep = Callable[[Visit], Any]
"""Does the work of a node: returns the index of the output to follow, or an awaitable of it."""

END: Final = -1
"""The path ends here."""


def refused(message: str) -> NodeError:
    """The error of a node whose configuration or payload does not fit."""
    return NodeError("ValidationError", message)
