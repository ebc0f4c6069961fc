"""Serving: from a request to an experience to its answer.

The version that the host names has the endpoint of the method and the path. Whoever may not use it gets the reply for
that: of the endpoint, else of the version, else a sentence with 401 or 403. A stored reply of the endpoint is given at
once; otherwise a workflow replies. An answer that streams topics stays open for as long as the same visitor could ask
for it again.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any, Final

import msgspec
import structlog

from trunkline.actors import readers
from trunkline.actors.core.contents.contents import Contents
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.messages import GetRecord
from trunkline.actors.core.records.owners import Owners
from trunkline.actors.core.records.resource import Resource
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.runtime.system import System
from trunkline.actors.core.runtime.work import Work, current_work
from trunkline.actors.core.values.errors import DomainError, Overloaded, Unauthorized
from trunkline.actors.fleet.devices.record.messages import DeviceShape
from trunkline.actors.fleet.devices.record.read_messages import GetDevice
from trunkline.actors.presentation.experience.access import MayUseDevice, Verdict, device_of, judge
from trunkline.actors.presentation.experience.content import DEVELOP_NAME
from trunkline.actors.presentation.experience.counts import RequestCounts
from trunkline.actors.presentation.experience.endpoints import ENDPOINTS
from trunkline.actors.presentation.experience.kind import NO_ENDPOINT
from trunkline.actors.presentation.experience.replies import Reply, stored_reply
from trunkline.actors.presentation.experience.requests import EndpointRequests, TakeRequest
from trunkline.actors.presentation.experience.sites import Site, Sites
from trunkline.actors.presentation.experience.terms import VersionChoice
from trunkline.actors.presentation.experience.tokens import ExperienceTokens, LoggedIn
from trunkline.actors.presentation.experience.users import EXPERIENCE_USERS
from trunkline.actors.workflows.triggers.replies import Replies
from trunkline.http.calls.errors import error_response
from trunkline.http.calls.request import check_current
from trunkline.http.experiences.answers import (
    NO_REPLY,
    Answer,
    Surroundings,
    answer_of,
    preflight,
    redirection,
    sentence,
)
from trunkline.http.experiences.bodies import body_of, cookies_of, headers_of, values_of
from trunkline.http.experiences.pages import MissingPage, PageProblem, Pages
from trunkline.http.experiences.topic_answer import TopicAnswer
from trunkline.http.experiences.visits import Visit, WebRequest
from trunkline.http.streams.sse import SSE_HEADERS

_STATUS_OF: Final[dict[Verdict, int]] = {"unauthorized": 401, "forbidden": 403}
_SENTENCE_OF: Final[dict[int, str]] = {
    401: "This endpoint is for users who are logged in.",
    403: "The user may not use this endpoint.",
}
_REPLY_ID_BYTES: Final = 16
"""Nobody guesses the id of a request that waits."""
_NOT_SHOWN: Final = "This page cannot be shown; the log of the server says why."
_HIDDEN: Final = "*****REDACTED*****"
"""Stands for the token of a user where workflows and pages see the request: it would be kept with their runs."""

_STREAM_HEADERS: Final = tuple((name.decode(), value.decode()) for name, value in SSE_HEADERS)
_OF_STREAM: Final = frozenset(name for name, _ in _STREAM_HEADERS)
"""What a workflow cannot say of a stream."""

_log = structlog.get_logger("trunkline.experience")


class _Refused(Exception):
    """A request that is answered by a sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence


class Serving:
    """Answers the requests to all experiences of one system."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._sites = system.component(Sites)
        self._tokens = system.component(ExperienceTokens)
        self._counts = system.component(RequestCounts)
        self._replies = system.component(Replies)
        self._waiting: Counter[bytes] = Counter()
        self._streaming: Counter[bytes] = Counter()
        self._pages = Pages(
            system.limits,
            self._sites,
            system.component(Contents).signatures,
            system.component(Owners).of,
        )

    async def answer(self, request: WebRequest) -> Answer:
        """Answer a request. Raises only `trio.Cancelled`: every failure becomes an answer."""
        headers = headers_of(request.headers) | {
            "x-forwarded-for": request.client,
            "x-forwarded-proto": "https" if request.secure else "http",
        }
        requested = headers.get("access-control-request-headers")
        around = Surroundings({}, request.prefix, request.secure, headers.get("origin"), requested)
        application, version = request.address
        current_work.set(Work("call", "experience", application or None))  # nobody's, if the slug is unknown
        site = None if version is None else self._sites.get(application, version)
        if site is None:
            return self._refusal(around, _Refused(404, "No version of an experience is served here."))
        around = around._replace(settings=site.settings)
        served = site.routes.find(request.method.lower(), request.path)
        if served is not None and not site.endpoints[served.endpoint]["enabled"]:
            served = None
        if served is None and request.method == "OPTIONS" and site.settings.get("endpointDefaultCors"):
            return preflight(around)
        endpoint = NO_ENDPOINT if served is None else served.endpoint
        try:
            visit = await self._read(request, site, around, endpoint, headers)
            visit.data["params"] = None if served is None else served.path
            answer = await self._serve(visit)
            if served is None or request.method in ("GET", "HEAD"):
                check_current(self._system, answer.stream)
        except (_Refused, DomainError) as refusal:
            answer = self._refusal(around, refusal)
        except Exception as bug:  # noqa: BLE001 - a bug in one request must not affect others
            _log.error("request to an experience failed", application=application.hex(), exc_info=bug)
            answer = sentence(around, 500, "The server failed to answer this request; the fault is logged.")
        self._counts.add(application, endpoint, answer.status, request.domain, site.version)
        return answer

    def _refusal(self, around: Surroundings, refusal: _Refused | DomainError) -> Answer:
        """The answer that refuses a request, unless it follows from data that may be old."""
        if isinstance(refusal, DomainError):
            return _error(around, self._system.checked(refusal))
        try:
            self._system.check_current()
        except DomainError as doubt:
            return _error(around, doubt)
        return sentence(around, refusal.status, refusal.sentence)

    # Reading.

    async def _read(
        self, request: WebRequest, site: Site, around: Surroundings, endpoint: bytes, headers: dict[str, str]
    ) -> Visit:
        now_ms = self._system.clock.wall_ms()
        data: Doc = {
            "path": request.path,
            "method": "get" if request.method == "HEAD" else request.method.lower(),
            "headers": headers,
            "query": values_of(request.query),
            "cookies": cookies_of(request.headers),
            "body": body_of(headers, request.body, self._system.limits.form_parts_max),
            "replyId": f"{endpoint.hex()}.{self._system.random_bytes(_REPLY_ID_BYTES).hex()}",
        }
        caller, token = self._caller(site.application, data, now_ms)
        experience: Doc = {
            "version": site.version,
            "endpoint": None,
            "user": None,
            "authInfo": None if caller is None else caller.auth_info,
        }
        if endpoint != NO_ENDPOINT:
            experience["endpoint"] = await self._shown(site, ENDPOINTS, endpoint)
        if caller is not None:
            experience["user"] = await self._shown(site, EXPERIENCE_USERS, caller.user.id)
        return Visit(site, around, endpoint, caller, data, experience, now_ms, token)

    def _caller(self, application: bytes, data: Doc, now_ms: int) -> tuple[LoggedIn | None, str]:
        """The user who is logged in, and the token. One that is not valid here counts as none: it may be one of the
        author."""
        for place in ("headers", "cookies", "query"):
            text = data[place].get("authorization")
            if not isinstance(text, str):
                continue
            scheme, _, token = text.strip().partition(" ")
            token = token.strip() or scheme
            try:
                found = self._tokens.check_token(self._system.journal, application, token, now_ms)
            except Unauthorized:
                continue
            data[place]["authorization"] = _HIDDEN
            return found, token
        return None, ""

    async def _shown(self, site: Site, resource: Resource, id: bytes) -> Doc:
        """A record as the API shows it. Raises `NotFound`."""
        ids = {"application": site.application, resource.kind.name: id}
        message = GetRecord(resource=resource.name, ids=ids, query=VersionChoice(version=site.version))
        return _plain(await readers.read(self._system, message))

    # Access and replies.

    async def _serve(self, visit: Visit) -> Answer:
        site, settings = visit.site, visit.site.settings
        endpoint = site.endpoints.get(visit.endpoint)
        if endpoint is None:
            where = f"{visit.data['method'].upper()} {visit.data['path'][:200]}"
            return await self._refuse(
                visit, 404, f"No endpoint serves {where}.", settings.get("notFoundReply")
            )
        verdict = judge(endpoint, visit.caller)
        if verdict == "allowed" and endpoint["access"] == "device":
            verdict = await self._judge_device(visit, endpoint)
        if verdict != "allowed":
            status = _STATUS_OF[verdict]
            stored = endpoint.get("unauthorizedReply") or settings.get("unauthorizedReply")
            return await self._refuse(visit, status, _SENTENCE_OF[status], stored)
        reply = stored_reply(endpoint.get("staticReply"), 200)
        if reply is None:
            reply = await self._reply_of_workflow(visit)
        else:
            await self._take(visit, is_served=True)
        return await self._sent(visit, reply)

    async def _judge_device(self, visit: Visit, endpoint: Doc) -> Verdict:
        """Whether the user may use the device that the request names, which the visit is then told of."""
        assert visit.caller is not None
        application = visit.site.application
        device = device_of(endpoint, self._pages.context(visit) | {"data": visit.data})
        if device is None or not await self._may_use(visit, device):
            return "forbidden"
        shown = GetDevice(application=application, device=device, query=DeviceShape())
        visit.experience["device"] = _plain(await readers.read(self._system, shown))
        return "allowed"

    async def _may_use(self, visit: Visit, device: bytes) -> bool:
        """Whether the user may use a device now."""
        assert visit.caller is not None
        message = MayUseDevice(application=visit.site.application, device=device, id=visit.caller.user.id)
        may_use: bool = await readers.read(self._system, message)
        return may_use

    async def _refuse(self, visit: Visit, status: int, sentence: str, stored: Doc | None) -> Answer:
        """The answer to a request that no endpoint serves, or that may not be served."""
        await self._take(visit, is_served=False)
        reply, refused = stored_reply(stored, status), _Refused(status, sentence)
        if reply is None:
            raise refused
        return await self._sent(visit, reply, without_page=refused)

    async def _sent(self, visit: Visit, reply: Reply, without_page: _Refused | None = None) -> Answer:
        """The answer of a reply. Raises `without_page`, if that is given, where there is no such page."""
        around = visit.around
        if reply.location is not None:
            return redirection(around, reply.status, reply.location, reply.headers, reply.cookies)
        if reply.topics:
            return self._streamed(visit, reply)
        if reply.page is None:
            return answer_of(around, reply.status, reply.headers, reply.cookies, reply.body)
        try:
            content_type, body = await self._pages.rendered(visit, reply.page)
        except PageProblem as problem:
            application, why = visit.site.application.hex(), str(problem)
            _log.warning("a page of an experience cannot be shown", application=application, problem=why)
            if without_page is not None and isinstance(problem, MissingPage):
                raise without_page from None
            told = why if visit.site.version == DEVELOP_NAME else _NOT_SHOWN  # its authors work on `develop`
            raise _Refused(500, told) from None
        headers = list(reply.headers)
        if all(name.lower() != "content-type" for name, _ in headers):
            headers.append(("content-type", content_type))
        return answer_of(around, reply.status, headers, reply.cookies, body)

    # Answers that stay open.

    def _streamed(self, visit: Visit, reply: Reply) -> Answer:
        """An answer that streams topics. Raises `Overloaded` if too many are open."""
        application, system = visit.site.application, self._system
        most = system.limits.experience_streams_max
        if self._streaming[application] >= most:
            raise Overloaded(
                f"{most} streams of this experience are open, which is the limit; try again later."
            )
        headers = [each for each in reply.headers if each[0].lower() not in _OF_STREAM]
        answer = answer_of(visit.around, reply.status, (*_STREAM_HEADERS, *headers), reply.cookies)
        self._streaming[application] += 1
        stream = TopicAnswer(
            system,
            application,
            reply.topics,
            may_send=partial(self._may_send, visit),
            may_stay=partial(self._may_stay, visit),
            closed=partial(self._stopped_streaming, application),
        )
        return answer._replace(stream=stream)

    def _stopped_streaming(self, application: bytes) -> None:
        self._streaming[application] -= 1
        if not self._streaming[application]:
            del self._streaming[application]

    def _may_send(self, visit: Visit) -> bool:
        """Whether the endpoint is still there, and the visitor may use it, but for the device of the request."""
        served, caller = visit.site, None
        site = self._sites.get(served.application, served.version)
        endpoint = None if site is None else site.endpoints.get(visit.endpoint)
        if endpoint is None or not endpoint["enabled"]:
            return False
        if visit.caller is not None:
            now_ms = self._system.clock.wall_ms()
            try:
                caller = self._tokens.check_token(
                    self._system.journal, served.application, visit.token, now_ms
                )
            except Unauthorized:
                return False
        return judge(endpoint, caller) == "allowed"

    async def _may_stay(self, visit: Visit) -> bool:
        """Whether the visitor may still use the device of the request."""
        device = visit.experience.get("device")
        return device is None or await self._may_use(visit, bytes.fromhex(device["id"]))

    # Workflows.

    async def _take(self, visit: Visit, *, is_served: bool) -> int:
        """Store the triggers of a request; return their number. Raises `TooManyRequests`."""
        site, data = visit.site, visit.data
        ref = Ref(EndpointRequests.kind, site.application, visit.endpoint)
        message = TakeRequest(
            version=site.version,
            flow_version=data["headers"].get("x-flow-version"),
            is_served=is_served,
            id=data["replyId"],
            data=data,
            more={"experience": visit.experience, "globals": site.globals},
            user=None if visit.caller is None else visit.caller.user.id,
            time_ms=visit.now_ms,
        )
        number: int = (await self._system.ask(ref, message)).value
        return number

    async def _reply_of_workflow(self, visit: Visit) -> Reply:
        """The first reply of the workflows that the request triggers."""
        application, client = visit.site.application, visit.data["headers"]["x-forwarded-for"]
        waiting = self._waiting[application]
        if waiting >= self._system.limits.experience_waiting_requests_max:
            raise Overloaded(
                f"{waiting} requests of this experience wait for workflows; try again in a second."
            )
        self._waiting[application] += 1
        try:
            with self._replies.expect(application, visit.data["replyId"], client) as expected:
                if not await self._take(visit, is_served=True):
                    raise _Refused(
                        501, "No enabled workflow is triggered by this endpoint, which has no stored reply."
                    )
                reply: Reply | None = await expected.wait(self._system.limits.experience_reply_wait_s)
        finally:
            self._waiting[application] -= 1
            if not self._waiting[application]:
                del self._waiting[application]
        if expected.refusal is not None:
            raise expected.refusal
        if expected.has_failed:
            raise _Refused(500, NO_REPLY)
        if reply is None:
            raise _Refused(504, "Time out waiting for workflow reply")
        return reply


def _plain(value: Any) -> Doc:
    """A record without what is only for callers of the API."""
    doc: Doc = msgspec.to_builtins(value)
    return {name: each for name, each in doc.items() if not name.startswith("_")}


def _error(around: Surroundings, error: DomainError) -> Answer:
    """An error of the domain, with the headers that tell when to try again."""
    status, headers, _ = error_response(error)
    more = [(name.decode(), value.decode()) for name, value in headers if name != b"www-authenticate"]
    return answer_of(around, status, more, body=msgspec.json.encode({"error": error.message}))
