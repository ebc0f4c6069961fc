"""Which workflows a change of a complete file triggers, and what their runs are told.

The key of a trigger is the path of a file, or of a directory with a slash at its end.
"""

from __future__ import annotations

from typing import Final, Literal

from trunkline.actors.core.records.kind import Doc, Kind
from trunkline.actors.core.records.shape import Shape
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.values.origin import Origin
from trunkline.actors.data.files.kind import PRIVATE_FILE
from trunkline.actors.data.files.messages import FileView
from trunkline.actors.data.files.paths import directory_of, path_of
from trunkline.actors.data.files.tree import Tree
from trunkline.actors.workflows.triggers.index import FlowIndex
from trunkline.actors.workflows.triggers.intake import Cause, stage

Action = Literal["create", "update", "delete"]

_ACTIONS: Final = frozenset({"create", "update", "delete"})
_TREES: Final = frozenset({"public", "private"})
_SHAPE: Final = Shape(FileView)


def stage_file(
    actor: Actor,
    kind: Kind,
    action: Action,
    id: bytes,
    doc: Doc,
    origin: Origin | None,
    names: tuple[str, ...] | None = None,
) -> None:
    """Stage the triggers of a change in the turn of the tree. `names` is the path, None if it is stored."""
    application = actor.ref.parent
    is_private = kind is PRIVATE_FILE
    waiting = [
        each
        for each in actor.system.component(FlowIndex).of(application).of_type("appFile")
        if each.wants(action, _ACTIONS) and each.wants("private" if is_private else "public", _TREES)
    ]
    if not waiting:
        return
    if names is None:
        names = (*Tree(actor.system.journal.get, application, kind).place_of(doc).names, doc["name"])
    path = path_of(names)
    watchers = [
        each for each in waiting if each.key == path or (each.key.endswith("/") and path.startswith(each.key))
    ]
    if watchers:
        file = {
            "id": id.hex(),
            f"{kind.name}Id": id.hex(),
            "applicationId": application.hex(),
            **_SHAPE.of(doc),
            "parentDirectory": directory_of(names[:-1]),
            "path": path,
            "isPrivate": is_private,
        }
        data = {"action": action, "file": file}
        stage(actor, watchers, Cause(path, data, actor.system.clock.wall_ms(), origin=origin))
