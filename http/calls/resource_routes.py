"""The five routes of a plain resource: list, create, get, change, delete."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from trunkline.actors.core.records.messages import (
    CreateRecord,
    DeleteRecord,
    GetRecord,
    ListRecords,
    PatchRecord,
)
from trunkline.actors.core.records.resource import Resource
from trunkline.http.calls.route import (
    APP_PATH,
    APPLICATION_ACTOR,
    ME_PATH,
    USER_ACTOR,
    ActorAddress,
    Group,
    Handler,
    LinkTemplates,
    NoQuery,
    Route,
)


def resource_routes(
    path: str,
    resource: Resource,
    *,
    many: str | None = None,
    to: ActorAddress | None = None,
    parents: Mapping[str, str] | None = None,
    create: Handler | None = None,
    remove: type[msgspec.Struct] = NoQuery,
    remover: Handler | None = None,
    cli: Collection[str] = (),
    changed: int = 200,
    group: Group | None = None,
    examples: tuple[Any, Any] = (None, None),
) -> tuple[Route, ...]:
    """The five routes of a resource whose records are at `path`.

    `to` is the actor that writes the records (by default the application or the user); the parents of the records are
    its ids. `parents` are the names and paths of further links of a record (its workflow).

    The operations are named `<resource>.get` and so on, and `<many>.get` and `<many>.post` (by default the name of the
    resource with an s). `create` replaces the ask that creates a record, `remover` the one that deletes it. `remove` is
    the query type of the deletion. `cli` names the operations that accept the scopes of command line tools, `changed`
    is the status of a change.

    `group` and `examples` (of a body that creates a record, and of one that changes it) are for the documents. The demo
    creates a record of the first example.
    """
    kind, of_user = resource.kind, resource.parent == "user"
    many = many or f"{resource.name}s"
    record_path = f"{path}/{{{resource.path_parameter}}}"
    noun, nouns = kind.noun, kind.nouns
    one = f"{'an' if noun[0] in 'aeioA' else 'a'} {noun}"
    to = to or (USER_ACTOR if of_user else APPLICATION_ACTOR)
    parents = {**(parents or {}), **({"me": ME_PATH} if of_user else {"application": APP_PATH})}
    own = {"self": f"{path}/{{{kind.name}Id}}", **parents}
    common: dict[str, Any] = {
        "resource": resource,
        "area": "user" if of_user else "application",
        "group": group,
    }
    choice = resource.choice or NoQuery
    choice_of_changes = NoQuery if resource.only_get_chooses else choice
    shown: dict[str, Any] = {"reply": resource.view, "links": LinkTemplates(own)}

    def of_cli(operation: str) -> dict[str, Any]:
        return {"operation": operation, "cli": operation in cli}

    shown_once = "; its secret is shown only in this response" if resource.shows_once else ""
    return (
        Route(
            method="GET",
            path=path,
            **of_cli(f"{many}.get"),
            summary=f"List {nouns}",
            message=ListRecords,
            query=resource.page,
            reply=("list", resource.view),
            beside=resource.beside,
            links=LinkTemplates({"self": path, **parents}, own),
            **common,
        ),
        Route(
            method="POST",
            path=path,
            **of_cli(f"{many}.post"),
            summary=f"Create {one}{shown_once}",
            message=CreateRecord,
            to=to,
            new_id=kind.name,
            then=GetRecord,
            body=resource.post,
            example=examples[0],
            prepare=resource.prepare,
            handler=create,
            query=choice_of_changes,
            ok=201,
            access="write",
            **shown,
            **common,
        ),
        Route(
            method="GET",
            path=record_path,
            **of_cli(f"{resource.name}.get"),
            summary=f"Get {one}",
            message=GetRecord,
            query=choice,
            **shown,
            **common,
        ),
        Route(
            method="PATCH",
            path=record_path,
            **of_cli(f"{resource.name}.patch"),
            summary=f"Change {one}",
            message=PatchRecord,
            to=to,
            then=GetRecord,
            body=resource.patch,
            example=examples[1],
            prepare=resource.prepare,
            query=choice_of_changes,
            ok=changed,
            access="write",
            **shown,
            **common,
        ),
        Route(
            method="DELETE",
            path=record_path,
            **of_cli(f"{resource.name}.delete"),
            summary=f"Delete {one}",
            message=DeleteRecord,
            to=to,
            query=remove,
            handler=remover,
            access="write",
            **common,
        ),
    )
