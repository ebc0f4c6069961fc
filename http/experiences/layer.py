"""The ASGI layer in front of the API: requests to experiences are answered here, all others go on.

A request is for an experience if its host is a domain of one, or `<slug>.<suffix>`; the host of `public_url`, addresses
and hosts without a dot never are. On all other hosts the path `/x/<slug>/...` leads to one, for those who have no name.
So a host belongs either to one experience or to the API: an experience never answers a call of the API.
"""

from __future__ import annotations

from typing import Any, Final

import trio

from trunkline.actors.core.runtime.system import System
from trunkline.actors.presentation.experience.sites import Address, Sites
from trunkline.http.experiences.answers import Answer, Surroundings, sentence
from trunkline.http.experiences.serving import Serving
from trunkline.http.experiences.topic_answer import TopicAnswer
from trunkline.http.experiences.visits import WebRequest
from trunkline.http.wire.asgi import Application, announced_bytes, client_address, header_of
from trunkline.http.wire.exchange import BODILESS
from trunkline.http.wire.headers import Fields
from trunkline.http.wire.timeouts import until

_ON_PATH: Final = "/x/"


class ExperienceHosts:
    """Which hosts belong to an experience. `suffix` follows the slug in the names of hosts; `own` is never one."""

    def __init__(self, sites: Sites, suffix: str, own: str | None) -> None:
        self._sites = sites
        self._suffix = f".{suffix}"
        self._own_host = own

    def has(self, host: bytes) -> bool:
        """Whether a host, as the header has it, belongs to an experience."""
        return self.of_name(name_of(host)) is not None

    def of_name(self, name: str) -> Address | None:
        """Where a host leads; None if it is one of the API."""
        if "." not in name or name == self._own_host or name.replace(".", "").isdigit():
            return None
        if name.endswith(self._suffix):
            return self.of_slug(name.removesuffix(self._suffix))
        return self._sites.of_domain(name)

    def certificate_of(self, name: str) -> str | None:
        """The certificate of a domain with its key, as PEM. The host of the API has none here: nobody gives it one."""
        if self.of_name(name) is None:
            return None
        found = self._sites.certificate_of(name)
        return None if found is None else found.pem

    def certificates(self) -> dict[str, str]:
        """Those of all domains that have one, by name."""
        found = {name: self.certificate_of(name) for name in self._sites.domains()}
        return {name: pem for name, pem in found.items() if pem is not None}

    def of_slug(self, slug: str) -> Address:
        """Where a slug leads: nowhere, if nobody has it."""
        return self._sites.of_slug(slug) or Address(b"", None)

    def name_of_slug(self, slug: str) -> str:
        """The name of the host of a slug."""
        return slug + self._suffix


class ExperienceLayer:
    """An ASGI application in front of another one."""

    def __init__(
        self, app: Application, system: System, hosts: ExperienceHosts, *, trust_forwarded: bool
    ) -> None:
        self._app = app
        self._limits = system.limits
        self._hosts = hosts
        self._serving = Serving(system)
        self._trust_forwarded = trust_forwarded

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        request = None if scope["type"] != "http" else self._request(scope)
        if request is None:
            await self._app(scope, receive, send)
            return
        body = await self._body(scope["headers"], receive)
        if body is None:
            return
        if isinstance(body, tuple):
            around = Surroundings({}, request.prefix, request.secure, None, None)
            refusal = sentence(around, *body)
            await _send(send, refusal.status, refusal.headers, refusal.body, method=request.method)
            return
        answer = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_when_left, receive, nursery.cancel_scope)
            answer = await self._serving.answer(request._replace(body=body))
            stream = answer.stream
            if stream is not None:
                try:
                    await _send_open(send, answer, stream, method=request.method)
                finally:
                    stream.close()
                answer = None
            nursery.cancel_scope.cancel()
        if answer is not None:
            await _send(send, answer.status, answer.headers, answer.body, method=request.method)

    def _request(self, scope: dict[str, Any]) -> WebRequest | None:
        """The request without its body; None if it is for the API."""
        headers = scope["headers"]
        domain, prefix = name_of(header_of(headers, b"host") or b""), ""
        path = scope["raw_path"].partition(b"?")[0].decode("latin1")
        address = self._hosts.of_name(domain)
        if address is None:
            if not path.startswith(_ON_PATH):
                return None
            slug, slash, rest = path.removeprefix(_ON_PATH).partition("/")
            address = self._hosts.of_slug(slug)
            domain, prefix, path = self._hosts.name_of_slug(slug), _ON_PATH + slug, slash + rest or "/"
        trusted = self._trust_forwarded
        is_secure = scope["scheme"] == "https" or (trusted and (b"x-forwarded-proto", b"https") in headers)
        return WebRequest(
            address,
            domain,
            prefix,
            scope["method"],
            path,
            scope["query_string"].decode("latin1"),
            headers,
            b"",
            is_secure,
            client_address(scope.get("client"), dict(headers), trusted=trusted),
        )

    async def _body(self, headers: Fields, receive: Any) -> bytes | tuple[int, str] | None:
        """The body, or the status and the sentence for one that cannot be taken; None if the client has left."""
        limits = self._limits
        bytes_max = limits.experience_body_bytes_max
        too_large = 413, f"The body is larger than {bytes_max} bytes, which an endpoint takes at most."
        if announced_bytes(headers) > bytes_max:
            return too_large  # a client that sent `Expect` is not asked for it
        pieces: list[bytes] = []
        size = 0
        deadline_s = trio.current_time() + limits.body_timeout_s
        while True:
            try:
                message = await until(deadline_s, receive)
            except trio.TooSlowError:
                return 408, "The body came too slowly."
            if message["type"] == "http.disconnect":
                return None
            pieces.append(message.get("body", b""))
            size += len(pieces[-1])
            if size > bytes_max:
                return too_large
            if not message.get("more_body"):
                return b"".join(pieces)


def name_of(host: bytes) -> str:
    """The name in a `Host` header, without the port; a part of an address of IPv6, which is no name."""
    return host.decode("latin1").lower().partition(":")[0].rstrip(".")


async def _cancel_when_left(receive: Any, scope: trio.CancelScope) -> None:
    """Stop waiting for an answer that nobody will read. What it was to trigger is stored all the same."""
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


async def _send(send: Any, status: int, headers: Fields, body: bytes, *, method: str) -> None:
    if status not in BODILESS:
        headers = [(b"content-length", b"%d" % len(body)), *headers]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if method == "HEAD" else body})


async def _send_open(send: Any, answer: Answer, stream: TopicAnswer, *, method: str) -> None:
    """Send an answer that stays open until its stream ends or the client has left."""
    await send({"type": "http.response.start", "status": answer.status, "headers": answer.headers})

    async def send_piece(data: bytes) -> None:
        await send({"type": "http.response.body", "body": data, "more_body": True})

    try:
        if method == "HEAD":
            await send_piece(b"")  # a body that is sent as a whole would have its length announced
        else:
            await stream.send_to(send_piece)
        await send({"type": "http.response.body", "body": b""})
    except* OSError:
        pass  # the client has left
