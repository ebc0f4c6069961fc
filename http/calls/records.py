"""The five rows of a plain resource: list, create, get, change, delete."""

from __future__ import annotations

from typing import Any

import msgspec

from trunkline.actors.records.messages import CreateRecord, DeleteRecord, GetRecord, ListRecords, PatchRecord
from trunkline.actors.records.resource import Resource
from trunkline.http.calls.route import ACCOUNT, APP, APPLICATION, ME, Handler, Links, NoQuery, Route


def records(
    path: str,
    resource: Resource,
    *,
    many: str | None = None,
    create: Handler | None = None,
    remove: type[msgspec.Struct] = NoQuery,
) -> tuple[Route, ...]:
    """The rows of a resource whose records lie at `path`.

    The operations are called `<resource>.get` and so on, and `<many>.get` and `<many>.post` (by default the name of the
    resource with an s). `create` stands in for the ask that creates a record, `remove` is the query of the deletion.
    """
    kind, of_user = resource.kind, resource.parent == "user"
    many = many or f"{resource.name}s"
    each = f"{path}/{{{kind.name}Id}}"
    noun, nouns = kind.noun, f"{kind.noun}s"
    one = f"{'an' if noun[0] in 'aeioA' else 'a'} {noun}"
    to = ACCOUNT if of_user else APPLICATION
    above = {"me": ME} if of_user else {"application": APP}
    own = {"self": each, **above}
    common: dict[str, Any] = {"resource": resource, "area": "user" if of_user else "application"}
    shown: dict[str, Any] = {"query": resource.choice or NoQuery, "reply": resource.view, "links": Links(own)}
    once = "; what is secret about it is shown in this answer only" if resource.shows_once else ""
    return (
        Route(
            method="GET",
            path=path,
            operation=f"{many}.get",
            summary=f"List {nouns}",
            message=ListRecords,
            query=resource.page,
            reply=("list", resource.view),
            links=Links({"self": path, **above}, own),
            **common,
        ),
        Route(
            method="POST",
            path=path,
            operation=f"{many}.post",
            summary=f"Create {one}{once}",
            message=CreateRecord,
            to=to,
            makes=kind.name,
            then=GetRecord,
            body=resource.post,
            prepare=resource.prepare,
            handler=create,
            ok=201,
            access="write",
            **shown,
            **common,
        ),
        Route(
            method="GET",
            path=each,
            operation=f"{resource.name}.get",
            summary=f"Get {one}",
            message=GetRecord,
            **shown,
            **common,
        ),
        Route(
            method="PATCH",
            path=each,
            operation=f"{resource.name}.patch",
            summary=f"Change {one}",
            message=PatchRecord,
            to=to,
            then=GetRecord,
            body=resource.patch,
            prepare=resource.prepare,
            access="write",
            **shown,
            **common,
        ),
        Route(
            method="DELETE",
            path=each,
            operation=f"{resource.name}.delete",
            summary=f"Delete {one}",
            message=DeleteRecord,
            to=to,
            query=remove,
            access="write",
            **common,
        ),
    )
