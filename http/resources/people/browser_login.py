"""The login that a browser remembers: a cookie that no script can read, for pages of this server only.

A page keeps its token in memory, where a reload and a second tab have none. So it asks once for the cookie
(`POST /me/session`), and a page that begins gets a token of the same login for it (`POST /auth/session`).

Owns the cookie and who may use it. Does not own what is signed in it (`calls/auth.py`), nor when a login ends: whatever
ends that of the token ends that of the cookie.

Against forged requests: no other operation takes the cookie, and this one only answers with a token, which a page of
another origin cannot read. Browsers do not send the cookie from other sites (`SameSite=Strict`), and a call whose
`Origin` is not this server is refused, because an experience may be a subdomain of it, which counts as the same site.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from trunkline.actors.access.authority import Principal
from trunkline.actors.core.values.errors import Forbidden, Invalid, Unauthorized
from trunkline.actors.people.accounts.messages import AuthedUser
from trunkline.actors.platform.jobs.results import Results
from trunkline.http.calls.call import Call
from trunkline.http.calls.request import Response
from trunkline.http.calls.responses import json_response
from trunkline.http.calls.route import ME_PATH
from trunkline.http.calls.verbs import post
from trunkline.http.experiences.bodies import cookies_of
from trunkline.http.resources.people.auth import user_token

PATH: Final = "/auth/session"
KEPT_S_MAX: Final = 400 * 86_400
"""Browsers keep no cookie for longer."""


async def remember_login(call: Call) -> Response:
    """Let the browser remember the login of the token of the call, for as long as such a token is valid."""
    principal = call.principal
    if principal.token_id is not None:
        raise Invalid(
            "An API token belongs to no login, so a browser cannot remember it; log in to get a token."
        )
    return _with_cookie(call, principal, json_response(call, 200, {"success": True}))


async def continue_login(call: Call) -> Response:
    """Return a new token of the login that the browser remembers, and renew the cookie."""
    _check_origin(call)
    text = cookies_of([(b"cookie", call.request.headers.get(b"cookie", b""))]).get(
        call.service.tokens.login_cookie
    )
    if text is None:
        raise Unauthorized("This browser remembers no login; log in.")
    principal = call.service.tokens.remembered(text)
    assert principal.user_id is not None
    assert principal.session is not None
    answer = user_token(call, principal.user_id, principal.session, principal.scopes, principal.ttl_s)
    return _with_cookie(call, principal, answer)


def _check_origin(call: Call) -> None:
    """Raise `Forbidden` unless a page of this server calls."""
    origin = call.request.header(b"origin")
    own = (call.request.header(b"host"), urlsplit(call.service.system.component(Results).base_url).netloc)
    if origin is None or urlsplit(origin).netloc not in own:
        raise Forbidden(
            "Origin: is not this server; only its own pages continue a login. Other programs log in with "
            "`POST /auth/user`."
        )


def _with_cookie(call: Call, principal: Principal, answer: Response) -> Response:
    kept_s = KEPT_S_MAX if principal.ttl_s is None else min(KEPT_S_MAX, principal.ttl_s)
    tokens = call.service.tokens
    text = tokens.remember(principal, call.now_ms)
    parts = [
        f"{tokens.login_cookie}={text}",
        f"Path={PATH}",
        f"Max-Age={int(kept_s)}",
        "HttpOnly",
        "SameSite=Strict",
    ]
    if call.service.system.component(Results).base_url.startswith("https:"):
        parts.append("Secure")
    answer.headers = [*answer.headers, (b"set-cookie", "; ".join(parts).encode())]
    return answer


ROUTES = (
    post(
        ME_PATH + "/session",
        "me.rememberLogin",
        "Let this browser remember the login of the token",
        remember_login,
        access="read",
        area="user",
    ),
    post(
        PATH,
        "auth.continueLogin",
        "Get a token of the login that this browser remembers",
        continue_login,
        reply=AuthedUser,
        access="none",
        also={
            401: "The browser remembers no login, or it has ended",
            403: "The caller is not a page of this server",
        },
    ),
)
