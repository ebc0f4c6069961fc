"""What ought to be stored, as sets of possibilities: the model against which the answers of the server are held.

A thing (a state, a row, a key) is in one of the states that it may be in; None is "not there". A change that is sent
adds a possibility. Its answer decides: acknowledged leaves only what it makes, refused only what was before. Without an
answer, because the client left or the power was cut, both stay possible until a reader has seen one of them.

A reader must find each thing in a state that was possible at some time between its question and its answer. From this
follow: acknowledged means stored and seen by the next reader, refused means nothing is stored, what was seen stays.

Owns the possibilities. Does not own what a call means: `devices.py`, `tables.py` and so on.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Final

LATE_S: Final = 60.0
"""So late a call may still be admitted whose client has left."""
State = Hashable | None


class Broken(AssertionError):
    """A promise is broken. The text says which thing, what was found, and what would have been right."""


class Thing:
    """What one thing may be. `coming` is what changes make of it that are under way, or whose caller has left.

    `version` rises whenever something becomes of it.
    """

    __slots__ = ("coming", "states", "version")

    def __init__(self) -> None:
        self.states: set[State] = {None}
        self.coming: list[State] = []
        self.version = 0

    @property
    def is_sure(self) -> bool:
        return len(self.states) == 1 and not self.coming

    @property
    def state(self) -> State:
        """The only state that is possible."""
        (state,) = self.states
        return state


class Window:
    """What each thing of a book may be, from a question to its answer."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._allowed: dict[Hashable, set[State]] = {}
        self._versions = {name: thing.version for name, thing in book.things.items()}
        for name, thing in book.things.items():
            self.add(name, thing)

    def add(self, name: Hashable, thing: Thing) -> None:
        """A thing may also be what it may be now."""
        self._allowed.setdefault(name, set()).update(thing.states)

    def allowed(self, name: Hashable) -> set[State]:
        return self._allowed.get(name, {None})

    def check(self, found: Mapping[Any, State], names: Iterable[Hashable] | None = None) -> None:
        """Hold what a reader has found against it. What is seen becomes sure. `names` are those that were asked for."""
        book = self._book
        for name in found:
            if name not in book.things:
                raise Broken(f"{book.title}: {name} is {found[name]!r}, which nobody has sent")
        for name in book.things if names is None else names:
            state, allowed = found.get(name), self.allowed(name)
            if state not in allowed:
                raise Broken(f"{book.title}: {name} is {_said(state)}; it can only be {_said(*allowed)}")
            if book.things[name].version == self._versions.get(name):
                book.seen(name, state)  # otherwise it may have been so before what has become of it since


class Change:
    """A call that makes things so, all of them or none. It may be sent again with the same key."""

    def __init__(self, targets: list[tuple[Book, Hashable, State]]) -> None:
        self.targets = targets
        self.became: bool | None = None
        """Whether it was stored, once a look at everything has shown it. None if all its things are gone."""
        self._before = [book.thing(name).states.copy() for book, name, _ in targets]
        self._begin()

    def _begin(self) -> None:
        for book, name, after in self.targets:
            thing = book.thing(name)
            thing.states.add(after)
            thing.coming.append(after)
            book.changed(name)
        self.answered = False

    def again(self) -> None:
        """It is sent once more, after an answer that never came."""
        if self.answered:
            self._begin()

    def stored(self) -> None:
        """It was acknowledged."""
        for book, name, after in self.targets:
            thing = book.thing(name)
            if after not in thing.states:
                raise Broken(
                    f"{book.title}: {name} was acknowledged as {_said(after)}, a reader saw otherwise"
                )
            thing.states = {after}
        self._end()

    def refused(self) -> None:
        """It was refused: nothing of it may be stored."""
        for (book, name, after), before in zip(self.targets, self._before, strict=True):
            thing = book.thing(name)
            if thing.states == {after} and after not in before:
                raise Broken(f"{book.title}: {name} was refused, and a reader saw {_said(after)} before")
            if after not in before:
                thing.states.discard(after)
        self._end()

    def over(self) -> None:
        """There will be no answer any more, and nothing of it is under way."""
        self._end()

    def _end(self) -> None:
        for book, name, after in () if self.answered else self.targets:
            book.thing(name).coming.remove(after)
            book.changed(name)
        self.answered = True

    def check_whole(self) -> None:
        """Of its things that are sure now, either all are stored or none. Others are of a device that is gone."""
        sure = [
            (book.thing(name).states, after)
            for (book, name, after), before in zip(self.targets, self._before, strict=True)
            if after not in before  # otherwise it says nothing
        ]
        done = {states == {after} for states, after in sure if len(states) == 1}
        if len(done) > 1:
            book, name, after = self.targets[0]
            raise Broken(
                f"{book.title}: a part of the change that makes {name} {_said(after)} is stored, a part is not"
            )
        self.became = done.pop() if done else None


class Book:
    """Things of one sort, by name."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.things: dict[Any, Thing] = {}
        self._windows: list[Window] = []
        self.emptying: Change | None = None
        """A change that removes everything, also what is made before it is done."""

    @property
    def takes_new(self) -> bool:
        """Whether it is known what becomes of a thing that is made now."""
        return self.emptying is None or self.emptying.answered

    def thing(self, name: Hashable) -> Thing:
        return self.things.setdefault(name, Thing())

    def sure(self) -> dict[Any, State]:
        """The things that are there for sure, which nobody changes."""
        return {
            name: each.state for name, each in self.things.items() if each.is_sure and each.state is not None
        }

    def changed(self, name: Hashable) -> None:
        """Something has become of a thing: those who read meanwhile may find it so or so."""
        self.things[name].version += 1
        for window in self._windows:
            window.add(name, self.things[name])

    def seen(self, name: Hashable, state: State) -> None:
        """A reader has found it so. If it is what it was before, a change that is under way may still be done."""
        thing = self.things[name]
        if len(thing.states) > 1 and state in thing.states and (not thing.coming or state in thing.coming):
            thing.states = {state}
            self.changed(name)

    @contextmanager
    def watched(self) -> Iterator[Window]:
        """What is possible while the body runs."""
        window = Window(self)
        self.watch(window)
        try:
            yield window
        finally:
            self.forget(window)

    def watch(self, window: Window) -> None:
        """Let a window know what becomes of the things, until it is forgotten."""
        self._windows.append(window)

    def forget(self, window: Window) -> None:
        self._windows.remove(window)


class Passing:
    """A call to a throttle: when it was admitted, at the earliest and at the latest, if it was (None: perhaps).

    `crashes` is how many actors had crashed before it: one that restarts has forgotten what its throttle has counted.
    Nobody knows it while actors move.
    """

    __slots__ = ("began_s", "crashes", "ended_s", "passed")

    def __init__(self, began_s: float) -> None:
        self.crashes = None if Throttle.moves else Throttle.crashes
        self.began_s = began_s
        self.ended_s = float("inf")
        self.passed: bool | None = None


class Throttle:
    """The calls that a throttle has let pass, as far as their answers tell: `calls` in any `window_s`."""

    crashes: ClassVar[int] = 0
    moves: ClassVar[int] = 0
    """How many moves of the application in which nearly everything is done are under way."""

    def __init__(self, calls: int, window_s: float) -> None:
        self.calls = calls
        self.window_s = window_s
        self._made: list[Passing] = []

    def begin(self, now_s: float) -> Passing:
        """A call is made. What no call under way can count any more is forgotten."""
        oldest_s = min([now_s, *(each.began_s for each in self._made if each.ended_s == float("inf"))])
        self._made = [each for each in self._made if each.ended_s > oldest_s - 2 * self.window_s]
        self._made.append(Passing(now_s))
        return self._made[-1]

    def end(self, call: Passing, now_s: float, *, passed: bool | None) -> tuple[int, int]:
        """Its answer has come, or will never come. At least and at most so many others were counted before it."""
        call.ended_s, call.passed = now_s + (LATE_S if passed is None else 0), passed
        others = [each for each in self._made if each is not call]
        surely = sum(
            each.passed is True
            and now_s - each.began_s < self.window_s
            and each.ended_s < call.began_s
            and each.crashes == Throttle.crashes
            for each in others
        )
        perhaps = sum(
            each.passed is not False and call.began_s - each.ended_s < self.window_s for each in others
        )
        return surely, perhaps


def _said(*states: State) -> str:
    return " or ".join("not there" if state is None else repr(state) for state in sorted(states, key=repr))
