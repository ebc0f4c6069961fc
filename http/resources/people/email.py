"""The verification of a user's e-mail address: the mail with a link, and what the link leads to.

The link leads to a page with a button, and only the button changes something: programs that scan mail open links, and
they must not verify addresses in the name of whoever reads the mail.
"""

from __future__ import annotations

from typing import Final

from trunkline.actors.core.outgoing.http_calls import Undelivered
from trunkline.actors.core.outgoing.mail import Mail
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Overloaded
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.people.accounts.email_links import PATH, EmailLink, EmailLinks
from trunkline.actors.people.accounts.messages import RequestVerification, VerifyEmail
from trunkline.actors.platform.jobs.results import Results
from trunkline.http.calls.call import Call
from trunkline.http.calls.errors import JSON, rate_limit
from trunkline.http.calls.request import Response
from trunkline.http.calls.responses import json_response
from trunkline.http.calls.route import ME_PATH, USER_ACTOR
from trunkline.http.calls.verbs import get, post
from trunkline.http.site.site import PAGE_POLICY, STATIC

_ASKING: Final = (STATIC / "verify-email.html").read_bytes()
_DONE: Final = (STATIC / "verified-email.html").read_bytes()
_HTML: Final = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    PAGE_POLICY,
)
_BAD_LINK: Final = {
    403: "The link is not a valid link of this server",
    404: "The link has expired, or the user has another address or is deleted",
}


async def request_verification(call: Call) -> Response:
    """Send a mail with a link that verifies the e-mail address. Nothing is sent for an address that is verified."""
    service, system = call.service, call.service.system
    ref = service.ref(call)
    answer = await system.ask(ref, RequestVerification())
    if answer.value is not None:
        base_url, ttl_s = system.component(Results).base_url, system.limits.email_link_s
        mail = _links(call).mail(
            ref.id, answer.value, base_url, call.now_ms, ttl_s, system.ids.new(call.now_ms).hex()
        )
        try:
            await system.component(Mail).send(mail)
        except Undelivered as reason:
            raise Overloaded(f"The mail was not sent. {reason} Try again later.") from None
    headers = [] if answer.verdict is None else [*rate_limit("verify_email", answer.verdict)]
    return json_response(call, 200, {"success": True}, [JSON, *headers])


async def show_verification(call: Call) -> Response:
    """Show a page with a button that verifies the e-mail address. The link in the mail leads here."""
    _links(call).read(call.query.token, call.now_ms)
    return Response(200, [*_HTML], _ASKING)


async def verify_email(call: Call) -> Response:
    """Verify an e-mail address by the token of the link in the mail. A browser gets a page as its response."""
    proof = _links(call).read(call.query.token, call.now_ms)
    await call.service.system.ask(Ref("user", ROOT, proof.user), VerifyEmail(email=proof.email))
    if "text/html" in (call.request.header(b"accept") or ""):
        return Response(200, [*_HTML], _DONE)
    return json_response(call, 200, {"success": True})


def _links(call: Call) -> EmailLinks:
    return call.service.system.component(EmailLinks)


ROUTES = (
    post(
        ME_PATH + "/verify-email",
        "me.verifyEmail",
        "Send a mail that verifies the e-mail address",
        RequestVerification,
        to=USER_ACTOR,
        area="user",
        handler=request_verification,
        also={429: "Too many mails were requested", 503: "The mail was not sent"},
    ),
    get(
        PATH,
        "auth.verifyEmailPage",
        "Show the page of a link that verifies an e-mail address",
        show_verification,
        bytes,
        query=EmailLink,
        access="none",
        also=_BAD_LINK,
    ),
    post(
        PATH,
        "auth.verifyEmail",
        "Verify an e-mail address",
        verify_email,
        query=EmailLink,
        access="none",
        also=_BAD_LINK,
    ),
)
