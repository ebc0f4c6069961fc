"""Applications, their access keys, their API tokens and their counts."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from trunkline.actors.accounts.messages import Session
from trunkline.actors.applications.messages import (
    ApplicationPage,
    ApplicationPatch,
    ApplicationPost,
    ApplicationView,
    CountRange,
    CreateApplication,
    CreateRecord,
    DeleteApplication,
    DeleteRecord,
    DeviceCounts,
    KeyPage,
    KeyPatch,
    KeyPost,
    KeyView,
    PatchApplication,
    PatchRecord,
    PayloadCountRange,
    PayloadStats,
    SummaryChoice,
    TokenPage,
    TokenPatch,
    TokenPost,
    TokenView,
)
from trunkline.actors.authority import session_claims
from trunkline.actors.messages.reads import (
    CountDevices,
    CountPayloads,
    GetApplication,
    GetRecord,
    ListApplications,
    ListKeys,
    ListTokens,
)
from trunkline.actors.values.errors import Forbidden
from trunkline.actors.values.timestamps import parse_iso
from trunkline.http.calls.call import Call, Response
from trunkline.http.calls.dispatch import reply
from trunkline.http.calls.route import APP, ME, Route


async def create_key(call: Call) -> Response:
    """Make an access key. The answer, and no other, shows its secret."""
    return await _created(call, lambda created: {"secret": created.secret})


async def create_token(call: Call) -> Response:
    """Make an API token. The answer, and no other, shows the token."""
    body: TokenPost = call.body
    tokens = call.dispatcher.tokens
    kind = "application" if call.application is not None else "user"
    family = "all.Application" if kind == "application" else "all.User"
    wanted = [family] if body.scope is UNSET else list(body.scope)
    scopes = tokens.checked_scopes(wanted, kind=kind, field="scope")
    for scope in sorted(scopes):
        if not tokens.covers(call.principal.scopes, scope):
            raise Forbidden(
                f"scope: a token can hand on only what it has itself, and this one has no {scope}."
            )
    call.body = TokenPost(
        name=body.name,
        description=body.description,
        expiration_date=body.expiration_date,
        scope=sorted(scopes),
        status=body.status,
        default_role=body.default_role,
        org_roles=body.org_roles,
    )
    ttl_s = None
    if isinstance(body.expiration_date, str):
        ttl_s = (parse_iso(body.expiration_date, field="expirationDate") - call.now_ms) / 1000
    assert call.parent is not None
    claims: dict[str, Any] = {"typ": kind, "sub": call.parent.hex()}
    session = call.principal.session
    if kind == "user" and session is not None:
        # The token belongs to the passwords of the account as its maker does, but begins a life of its own.
        claims |= session_claims(Session(session.generation, max(call.now_ms, session.since_ms)))

    def once(created: Any) -> dict[str, Any]:
        return {"token": tokens.issue({**claims, "jti": created.id.hex()}, scopes, call.now_ms, ttl_s)}

    return await _created(call, once)


async def _created(call: Call, once: Any) -> Response:
    """Ask the owner to make the record, read it back, and add what is shown once."""
    dispatcher = call.dispatcher
    answer = await dispatcher.system.ask(dispatcher.ref(call), dispatcher.message(call, CreateRecord))
    call.record = answer.value.id
    shown = await dispatcher.read(call, GetRecord)
    return reply(call, 201, {**shown, **once(answer.value)})


def _record_routes(
    path: str,
    id_name: str,
    one: str,
    many: str,
    noun: str,
    nouns: str,
    *,
    kind: str,
    to: Any,
    reach: Any,
    view: Any,
    post: Any,
    patch: Any,
    page: Any,
    listing: Any,
    create: Any,
) -> tuple[Route, ...]:
    """The five rows of a plain kind: list, create, get, patch, delete."""
    each = f"{path}/{{{id_name}}}"
    common: dict[str, Any] = {"kind": kind, "reach": reach}
    return (
        Route(
            method="GET",
            path=path,
            operation=f"{many}.get",
            summary=f"List the {nouns}",
            message=listing,
            query=page,
            reply=("list", view),
            **common,
        ),
        Route(
            method="POST",
            path=path,
            operation=f"{many}.post",
            summary=f"Create an {noun}; what is secret about it is shown in this answer only",
            body=post,
            reply=view,
            ok=201,
            to=to,
            access="write",
            handler=create,
            **common,
        ),
        Route(
            method="GET",
            path=each,
            operation=f"{one}.get",
            summary=f"Get an {noun}",
            message=GetRecord,
            reply=view,
            **common,
        ),
        Route(
            method="PATCH",
            path=each,
            operation=f"{one}.patch",
            summary=f"Change an {noun}",
            message=PatchRecord,
            body=patch,
            to=to,
            then=GetRecord,
            reply=view,
            access="write",
            **common,
        ),
        Route(
            method="DELETE",
            path=each,
            operation=f"{one}.delete",
            summary=f"Delete an {noun}",
            message=DeleteRecord,
            to=to,
            access="write",
            **common,
        ),
    )


ROUTES = (
    Route(
        method="GET",
        path="/applications",
        operation="applications.get",
        summary="List the applications of the user",
        message=ListApplications,
        query=ApplicationPage,
        reply=("list", ApplicationView),
        reach="user",
    ),
    Route(
        method="POST",
        path="/applications",
        operation="applications.post",
        summary="Create an application",
        message=CreateApplication,
        body=ApplicationPost,
        query=SummaryChoice,
        to="application",
        creates="application",
        then=GetApplication,
        reply=ApplicationView,
        ok=201,
        access="write",
        reach="user",
    ),
    Route(
        method="GET",
        path=APP,
        operation="application.get",
        summary="Get an application",
        message=GetApplication,
        query=SummaryChoice,
        reply=ApplicationView,
    ),
    Route(
        method="PATCH",
        path=APP,
        operation="application.patch",
        summary="Change an application",
        message=PatchApplication,
        body=ApplicationPatch,
        query=SummaryChoice,
        to="application",
        then=GetApplication,
        reply=ApplicationView,
        access="write",
    ),
    Route(
        method="DELETE",
        path=APP,
        operation="application.delete",
        summary="Delete an application with everything in it",
        message=DeleteApplication,
        to="application",
        access="write",
    ),
    Route(
        method="GET",
        path=APP + "/deviceCounts",
        operation="application.deviceCounts",
        summary="Devices per day",
        message=CountDevices,
        query=CountRange,
        reply=DeviceCounts,
    ),
    Route(
        method="GET",
        path=APP + "/payloadCounts",
        operation="application.payloadCounts",
        summary="Payloads by kind",
        message=CountPayloads,
        query=PayloadCountRange,
        reply=PayloadStats,
    ),
    *_record_routes(
        APP + "/keys",
        "applicationKeyId",
        "applicationKey",
        "applicationKeys",
        "access key",
        "access keys",
        kind="applicationKey",
        to="application",
        reach="application",
        view=KeyView,
        post=KeyPost,
        patch=KeyPatch,
        page=KeyPage,
        listing=ListKeys,
        create=create_key,
    ),
    *_record_routes(
        APP + "/tokens",
        "apiTokenId",
        "applicationApiToken",
        "applicationApiTokens",
        "API token of the application",
        "API tokens of the application",
        kind="apiToken",
        to="application",
        reach="application",
        view=TokenView,
        post=TokenPost,
        patch=TokenPatch,
        page=TokenPage,
        listing=ListTokens,
        create=create_token,
    ),
    *_record_routes(
        ME + "/tokens",
        "apiTokenId",
        "userApiToken",
        "userApiTokens",
        "API token of the user",
        "API tokens of the user",
        kind="apiToken",
        to="account",
        reach="user",
        view=TokenView,
        post=TokenPost,
        patch=TokenPatch,
        page=TokenPage,
        listing=ListTokens,
        create=create_token,
    ),
)
