"""Routes: webhooks, and the addresses that other systems call. An address takes any body and needs no token of ours."""

from __future__ import annotations

from typing import Final

from trunkline.actors.jobs.results import Results
from trunkline.actors.values.errors import PayloadTooLarge, Unauthorized
from trunkline.actors.webhooks.address import find_webhook
from trunkline.actors.webhooks.messages import CallAnswer, ReceiveCall, ReceiveSignedCall
from trunkline.actors.webhooks.resource import WEBHOOKS, WebhookRemoval
from trunkline.http.calls.call import Call
from trunkline.http.calls.dispatch import SUCCESS
from trunkline.http.calls.errors import JSON, MethodNotAllowed, error_response, protocol_error, rate_limit
from trunkline.http.calls.request import Headers, Response
from trunkline.http.calls.resource_routes import resource_routes
from trunkline.http.calls.route import APP_PATH, Route
from trunkline.http.resources.triggered_flows import remove_with_flows

_BODILESS: Final = frozenset({204, 205, 304})
_METHODS: Final = "POST, GET, PUT, PATCH, DELETE"
_TEXT: Final = (b"content-type", b"text/plain; charset=utf-8")
# Nobody may make a browser show the text of a handshake as a page.
_NO_SNIFF: Final = (b"x-content-type-options", b"nosniff")


async def receive(call: Call) -> Response:
    """Call the address of a webhook. The answer is `{"success": true}` with the response code of the webhook.

    Any body is taken. A disabled webhook answers with 200 and takes nothing. Facebook and Fitbit get the answers that
    they expect when they verify the address.
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
    kind = ReceiveSignedCall if doc["verificationType"] == "alexa" else ReceiveCall
    message = kind(
        method=request.method,
        url=f"{system.component(Results).base_url}{request.path}{query}",
        query=request.query,
        headers=request.headers,
        body=request.body,
    )
    try:
        answer = await system.ask(ref, message)
    except Unauthorized as refusal:
        status, _, body = error_response(refusal)
        return Response(status, [JSON, (b"www-authenticate", b'Basic realm="webhook"')], body)
    headers = [] if answer.verdict is None else rate_limit("webhook_call", answer.verdict)
    return _response(answer.value, headers)


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
        free_query=True,
        access="none",
        area="public",
        also={
            401: "The webhook needs another user name and password",
            403: "The call is not from the service that the webhook expects",
            404: "There is no webhook at this address",
            413: "The body has more bytes than a webhook takes",
            429: "The webhook was called too often",
            501: "The webhook needs something that this server does not have yet",
        },
    )
    for method in _METHODS.split(", ")
)

ROUTES = (
    *resource_routes(APP_PATH + "/webhooks", WEBHOOKS, remove=WebhookRemoval, remover=remove_with_flows),
    *_ADDRESS,
)
