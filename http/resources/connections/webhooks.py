"""Routes: webhooks, and the addresses that other systems call. An address takes any body and needs no token of ours."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable
from typing import Any, Final

import msgspec

from trunkline.actors.connections.webhooks.address import find_webhook
from trunkline.actors.connections.webhooks.messages import (
    CallAnswer,
    ReceiveCall,
    ReceiveSignedCall,
    WebhookReply,
)
from trunkline.actors.connections.webhooks.resource import WEBHOOKS, WebhookRemoval
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Invalid, PayloadTooLarge, Unauthorized
from trunkline.actors.platform.jobs.results import Results
from trunkline.actors.workflows.triggers.replies import Replies
from trunkline.http.calls.call import Call
from trunkline.http.calls.errors import JSON, MethodNotAllowed, error_response, protocol_error, rate_limit
from trunkline.http.calls.request import Headers, Request, Response
from trunkline.http.calls.resource_routes import resource_routes
from trunkline.http.calls.responses import SUCCESS
from trunkline.http.calls.route import APP_PATH, Route
from trunkline.http.experiences.answers import NO_REPLY, Surroundings, answer_of, sentence
from trunkline.http.experiences.bodies import Bytes, body_of, text_of, values_of
from trunkline.http.resources.connections.webhook_connections import connect
from trunkline.http.resources.workflows.triggered_flows import remove_with_flows

_NOT_TOLD: Final = frozenset({b"cookie"})
_BODILESS: Final = frozenset({204, 205, 304})
_METHODS: Final = "POST, GET, PUT, PATCH, DELETE"
_TEXT: Final = (b"content-type", b"text/plain; charset=utf-8")
# Nobody may make a browser show the text of a handshake as a page.
_NO_SNIFF: Final = (b"x-content-type-options", b"nosniff")


async def receive(call: Call) -> Response:
    """Call the address of a webhook. The answer is `{"success": true}` with the response code of the webhook.

    Any body is taken, and told to the workflows that the webhook starts, as is what follows the token in the path; but
    none that is compressed or of an unknown charset, unless it is told as bytes. A disabled webhook answers with 200
    and takes nothing. Facebook and Fitbit get the answers that they expect when they verify the address. A webhook that
    waits for a reply answers with that of the first workflow that replies, with 500 if all of them fail, or with 504. A
    webhook with `isWebsocket` takes WebSocket connections instead of calls.
    """
    system, request = call.service.system, call.request
    if request.method == "HEAD":
        raise MethodNotAllowed(
            "HEAD is not a method of this path; it takes no calls without an answer.", _METHODS
        )
    with system.store.snapshot() as snapshot:
        ref, doc = find_webhook(snapshot, call.ids["webhookToken"])
    bytes_max = system.limits.webhook_body_bytes_max
    if len(request.body) > bytes_max:
        raise PayloadTooLarge(f"The body has {len(request.body)} bytes; a webhook takes at most {bytes_max}.")
    system.check_load()
    query = f"?{request.query.decode('latin1')}" if request.query else ""
    url = f"{system.component(Results).base_url}{request.path}{query}"
    if request.offer is not None or (doc["isWebsocket"] and doc["enabled"]):
        return await _admitted(call, connect(call, ref, url, _headers(request), _query(request)))
    kind = ReceiveSignedCall if doc["verificationType"] == "alexa" else ReceiveCall
    reply_id = f"{ref.id.hex()}-{secrets.token_hex(16)}"
    message = kind(
        method=request.method,
        url=url,
        query=request.query,
        headers=request.headers,
        body=request.body,
        client=request.address,
        told=_told(request, doc, system.limits.form_parts_max) if doc["enabled"] else {},
        flow_version=request.header(b"x-flow-version"),
        reply_id=reply_id,
        waits=doc["waitForReply"],
    )
    return await _admitted(call, _answered(call, ref, message))


async def _admitted(call: Call, answer: Awaitable[Response]) -> Response:
    """The answer, or that a password is needed."""
    try:
        return await answer
    except Unauthorized as refusal:
        call.service.system.check_current()
        status, _, body = error_response(refusal)
        return Response(status, [JSON, (b"www-authenticate", b'Basic realm="webhook"')], body)


async def _answered(call: Call, ref: Ref, message: ReceiveCall) -> Response:
    system = call.service.system
    limits, reply, has_failed = system.limits, None, False
    if message.waits:
        replies = system.component(Replies)
        most, address = limits.webhook_waiting_calls_max, call.request.address
        with replies.expect_few(ref.parent, message.reply_id, address, most) as expected:
            answer = await system.ask(ref, message)
            if answer.value.waits:
                reply = await expected.wait(limits.webhook_reply_wait_s)
                if expected.refusal is not None:
                    raise expected.refusal
                has_failed = expected.has_failed
    else:
        answer = await system.ask(ref, message)
    headers = [] if answer.verdict is None else rate_limit("webhook_call", answer.verdict)
    if answer.value.waits:
        return _replied(call, reply, has_failed, headers)
    return _response(answer.value, headers)


def _headers(request: Request) -> dict[str, str]:
    """The headers that workflows get: a workflow may check `Authorization` itself, against a global for instance."""
    return {
        name.decode("latin1"): value.decode("latin1")
        for name, value in request.headers.items()
        if name not in _NOT_TOLD
    }


def path_below(path: str) -> str:
    """What follows the address of a webhook in a path: `/` alone, or with more."""
    return "/" + path.lstrip("/").split("/", 2)[2] if path.strip("/").count("/") > 1 else "/"


def _query(request: Request) -> dict[str, Any]:
    return values_of(request.query.decode("latin1"))


def _told(request: Request, doc: Doc, parts_max: int) -> dict[str, Any]:
    """What workflows get of a call. A body that is not what it says it is, is told as text."""
    headers = _headers(request)
    given = Bytes(doc.get("castBuffersAs"), doc["annotateMultipart"])
    try:
        body = body_of(headers, request.body, parts_max, given)
    except Invalid:
        body = text_of(headers.get("content-type", ""), request.body)
    return {
        "body": body,
        "headers": headers,
        "method": request.method.lower(),
        "path": path_below(request.path),
        "query": _query(request),
    }


def _replied(call: Call, reply: WebhookReply | None, has_failed: bool, headers: Headers) -> Response:
    """The answer with the reply of a workflow. It is no page of this server, so browsers give it no origin."""
    base_url = call.service.system.component(Results).base_url
    around = Surroundings({}, "/webhooks", base_url.startswith("https:"), None, None)
    if has_failed:
        sent = sentence(around, 500, NO_REPLY)
    elif reply is None:
        sent = sentence(around, 504, "Time out waiting for workflow reply")
    else:
        body = reply.body.encode("utf-8", "replace") if isinstance(reply.body, str) else reply.body
        given = list(reply.headers)
        if body and all(name.lower() != "content-type" for name, _ in given):
            given.append(("content-type", _type_of(body)))
        sent = answer_of(around, reply.status if 200 <= reply.status <= 599 else 200, given, body=body)
    return Response(sent.status, [*headers, *sent.headers], sent.body)


def _type_of(body: bytes) -> str:
    try:
        msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return "text/plain; charset=utf-8"
    return "application/json"


def _response(answer: CallAnswer, headers: Headers) -> Response:
    if answer.not_served is not None:
        more, body = protocol_error(501, answer.not_served)
        return Response(501, [*headers, *more], body)
    if answer.status in _BODILESS:
        return Response(answer.status, headers)
    if answer.text is not None:
        return Response(answer.status, [*headers, _TEXT, _NO_SNIFF], answer.text.encode())
    return Response(answer.status, [*headers, JSON], SUCCESS)


_ADDRESS: Final = tuple(
    Route(
        method=method,
        path="/webhooks/{webhookToken}",
        operation=f"webhookAddress.{method.lower()}",
        summary=f"Call a webhook with {method}",
        handler=receive,
        below=True,
        free_query=True,
        access="none",
        area="public",
        upgrades=method == "GET",
        also={
            **(
                {400: "The webhook takes HTTP requests, not WebSocket connections"} if method == "GET" else {}
            ),
            401: "The webhook needs another user name and password",
            403: "The call is not from the service that the webhook expects",
            404: "There is no webhook at this address",
            426: "The webhook takes WebSocket connections only",
            413: "The body has more bytes than a webhook takes",
            415: "The body is compressed, or its charset is not known",
            429: "The webhook was called too often, or too often with a wrong password",
            501: "The webhook needs a workflow that replies",
        },
    )
    for method in _METHODS.split(", ")
)

ROUTES = (
    *resource_routes(
        APP_PATH + "/webhooks",
        WEBHOOKS,
        examples=({"name": "deliveries"}, {"description": "For the warnings of the weather service."}),
        remove=WebhookRemoval,
        remover=remove_with_flows,
    ),
    *_ADDRESS,
)
