"""The check of a bundle before anything is written: all that is wrong with it, not only the first fault.

All steps of its plan are taken on a scratch copy of the store (`rehearsal.py`), by the code that takes them for good
afterwards. Runs in a worker thread.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import trio

from trunkline.actors.core.contents.named import counted_bytes
from trunkline.actors.core.values.errors import DomainError, Invalid, InvalidParts, Overloaded, StorageFull
from trunkline.actors.data.files.messages import SetContent
from trunkline.actors.platform.jobs.results import Pauses
from trunkline.actors.portability.bundles.plan import Plan, Problem, Target, View
from trunkline.actors.portability.bundles.rehearsal import Rehearsal
from trunkline.actors.portability.bundles.steps import Step, Steps
from trunkline.store import keys
from trunkline.store.scratch import Scratch

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.actor import Actor
    from trunkline.actors.core.runtime.system import System
    from trunkline.actors.portability.bundles.reader import Source
    from trunkline.limits.table import Limits
    from trunkline.store.snapshot import Snapshot

PAUSE_STEPS: Final = 8
"""The check pauses for the event loop after so many steps: each is a turn of an actor."""


class Checked(NamedTuple):
    """The outcome: how many resources there are by name, the first problems, and how many more there are."""

    counts: dict[str, int]
    problems: list[Problem]
    more: int

    def require(self, limits: Limits) -> None:
        """Raise `InvalidParts` if there is a problem."""
        count = len(self.problems) + self.more
        if count:
            said = "one part of the bundle is" if count == 1 else f"{count} parts of the bundle are"
            hidden = f" (the first {len(self.problems)} of them)" if self.more else ""
            raise InvalidParts(
                f"Nothing was changed, because {said} not acceptable: see validationErrors{hidden}.",
                msgspec.to_builtins(self.problems),
                count=count,
                logged_max=limits.bulk_errors_max,
            )


def check_bundle(
    system: System, actors: Iterable[type[Actor]], snapshot: Snapshot, source: Source, target: Target
) -> Checked:
    """Check everything. Raises `Invalid` or `PayloadTooLarge` if the bundle cannot be read at all.

    `actors` are the kinds of actors of the system.
    """
    limits = system.limits
    problems: list[Problem] = []
    more = 0
    with Scratch(snapshot, bytes_max=limits.bundle_unpacked_bytes_max) as scratch:
        plan = Plan(source, target, limits, View(scratch))
        room = limits.application_files_bytes_max - counted_bytes(
            snapshot.get(keys.COUNTS, keys.content_count_key(target.application))
        )
        rehearsal = Rehearsal(system, scratch, actors)
        problems += plan.problems
        more += plan.refused - len(problems)
        pause = Pauses(PAUSE_STEPS)
        for step in Steps(plan, limits).all():
            pause()
            refusal = step.refusal
            try:
                _check_content(source, step)
                for ref, message in step.asks:
                    if not isinstance(message, SetContent):  # no content is written
                        rehearsal.ask(ref, message)
            except (Overloaded, StorageFull):
                raise
            except DomainError as error:
                refusal = error
            if step.content is not None:
                had_room, room = room >= 0, room - step.content.size_bytes
                if had_room and room < 0:
                    refusal = refusal or _no_room(limits)
            if refusal is None:
                continue
            if len(problems) < limits.bundle_errors_max:
                problems.append(step.problem(refusal))
            else:
                more += 1
    return Checked(plan.counts, problems, more)


def _check_content(source: Source, step: Step) -> None:
    """Raise `Invalid` if the content of a file is not what its line says."""
    content = step.content
    if content is None:
        return
    hash = hashlib.sha256()
    size = 0
    for piece in source.content(content.entry):
        hash.update(piece)
        size += len(piece)
        trio.from_thread.check_cancelled()
    if (size, hash.hexdigest()) != (content.size_bytes, content.sha256):
        raise Invalid(f"more: the size and the sha256 are not those of the entry {content.entry}.")


def _no_room(limits: Limits) -> Invalid:
    """The refusal of the first file for which an application has no room."""
    most = limits.application_files_bytes_max
    return Invalid(
        f"fileSize: with this file the files of the application would have more than {most} bytes."
    )
