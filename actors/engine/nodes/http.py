"""HttpNode: sends a request to a URL, and puts the answer into the payload.

`responsePath` gets `statusCode`, `headers`, `body`, `requestDuration` in milliseconds and the `request`, without what
proves who sent it. The body is the value of JSON, else a text as `encodingTemplate` says; without that in the charset
of its type, or in UTF-8 where that is none that is known. Every status is an answer. No answer within `timeoutTemplate`
seconds (10, at most 30), an address that is not public, and an answer of more than 5 MB are errors: they end the run,
or are at `errorPath` with `name` and `message` if `errorBehavior` is `payloadPath`. A configuration that gives no URL
or no JSON always ends the run.

Requests that change something have an `Idempotency-Key` unless `headerInfo` names it, with a value or without one: it
is the same one if the run is repeated after a crash, which may send the request once more. Headers about the connection
and the length of the body are those of the server. A credential proves the sender to the URLs under its `uriMatch`, and
a URL without a host begins with that. Redirects are followed, with what proves the sender only where it is meant for.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import httpx
import msgspec

from trunkline.actors.core.formulas.byte_texts import FROM_TEXT, codec_of, decoded
from trunkline.actors.core.formulas.json_text import json_text
from trunkline.actors.core.formulas.json_values import json_value
from trunkline.actors.core.formulas.price import computed
from trunkline.actors.core.outgoing.http_calls import Received, Undelivered
from trunkline.actors.core.outgoing.http_requests import Late, Request, fetch
from trunkline.actors.core.runtime.computing import INLINE_JSON_BYTES, in_thread
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.header_texts import OF_CONNECTIONS, has_control
from trunkline.actors.engine.bodies import json_reader
from trunkline.actors.engine.encodings import bytes_written, shows_bytes, text_writer
from trunkline.actors.engine.errors import NodeError
from trunkline.actors.engine.heavy_work import check_payload
from trunkline.actors.engine.node_rights import WRITES, may_read
from trunkline.actors.engine.node_type import Form
from trunkline.actors.engine.request_senders import CREDENTIAL_NAME, SENDER, sender_of
from trunkline.actors.engine.settings import (
    ERROR_BEHAVIOR,
    ERROR_PATH,
    KEY,
    VALUE,
    ChoiceSetting,
    Config,
    FlagSetting,
    LongTemplateSetting,
    NumberSetting,
    PathSetting,
    RowsSetting,
    TemplateSetting,
    TextSetting,
)
from trunkline.actors.engine.tools import (
    Unusable,
    choice_of,
    chosen,
    error_path,
    is_on,
    list_of,
    needed_template,
    needed_text_reader,
    number_reader,
    path_of,
    template_of,
    text_of,
    text_of_value,
    text_reader,
)
from trunkline.actors.engine.visit import NodeStep, Visit, refused
from trunkline.actors.platform.jobs.private_calls import may_be_private

TYPE: Final = "HttpNode"

_METHOD: Final = ChoiceSetting("method", "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")
_URI: Final = TemplateSetting("uriTemplate", is_needed=True)
_KEY: Final = TextSetting("key")
_HEADER_INFO: Final = RowsSetting("headerInfo", _KEY, VALUE)
_BODY_TYPE: Final = ChoiceSetting(
    "bodyType", "string", "jsonTemplate", "multipart", "urlencoded", "url", "none"
)
_BODY: Final = LongTemplateSetting("bodyTemplate")
_BODY_FIELDS: Final = RowsSetting("bodyFields", KEY, VALUE)
_REQUEST_ENCODING: Final = TemplateSetting("requestEncodingTemplate")
_TIMEOUT: Final = NumberSetting("timeoutTemplate")
_ENCODING: Final = TemplateSetting("encodingTemplate")
_DISABLE_REDIRECTS: Final = FlagSetting("disableRedirects")
_DISABLE_SSL_VERIFICATION: Final = FlagSetting("disableSSLVerification")
_CA_CERT: Final = LongTemplateSetting("caCertTemplate")
_RESPONSE_PATH: Final = PathSetting("responsePath")
FORM: Final = Form(
    "data",
    (
        _METHOD,
        _URI,
        _HEADER_INFO,
        _BODY_TYPE,
        _BODY,
        _BODY_FIELDS,
        _REQUEST_ENCODING,
        *SENDER,
        _TIMEOUT,
        _ENCODING,
        _DISABLE_REDIRECTS,
        _DISABLE_SSL_VERIFICATION,
        _CA_CERT,
        _RESPONSE_PATH,
        ERROR_BEHAVIOR,
        ERROR_PATH,
    ),
)
NEEDS: Final = (*WRITES, may_read("credential.get", CREDENTIAL_NAME))

ANSWER_BYTES_MAX: Final = 5_000_000
TIMEOUT_S: Final = 10.0
TIMEOUT_S_MAX: Final = 30.0
ROWS_MAX: Final = 100
"""Headers or fields of a form."""

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HIDDEN: Final = "(hidden)"


class _Body(NamedTuple):
    """What is sent, its type, and what is shown of it."""

    content: bytes | None = None
    content_type: str | None = None
    shown: tuple[str, str] | None = None


def prepare(config: Config) -> NodeStep:
    method = chosen(config, _METHOD, text_of(config, _METHOD).upper())
    uri, timeout = needed_text_reader(config, _URI), number_reader(config, _TIMEOUT)
    body, headers, sender = _body(config, method), _headers(config), sender_of(config)
    authority, encoding = text_reader(config, _CA_CERT), text_reader(config, _ENCODING)
    verifies = not is_on(config, _DISABLE_SSL_VERIFICATION)
    follows = not is_on(config, _DISABLE_REDIRECTS)
    named = {text_of(row, _KEY).strip().lower() for row in _rows(config, _HEADER_INFO)}
    has_key = method not in ("GET", "HEAD") and "idempotency-key" not in named
    result = path_of(config, _RESPONSE_PATH)
    problem = error_path(config)

    def step(visit: Visit) -> Any:
        world = visit.world
        url = uri(visit).strip()
        if not url:
            raise refused("config.uriTemplate: gives nothing; give the URL to call.")
        sent, seconds = body(visit), _seconds(timeout, visit)
        write, given = _writer(encoding(visit)), headers(visit)
        names = {name.lower() for name, _ in given}
        key = f'"{world.flow.hex()}-{world.key(visit.place)}"'
        added = {"Accept": "*/*", "Accept-Encoding": "identity"}
        if sent.content_type is not None:
            added["Content-Type"] = sent.content_type
        if has_key:
            added["Idempotency-Key"] = key
        given = [*((name, value) for name, value in added.items() if name.lower() not in names), *given]
        whole = sender(visit, url)
        request = Request(
            method,
            whole.url,
            httpx.Headers([(name.encode(), value.encode("utf-8", "replace")) for name, value in given]),
            sent.content,
            whole.proof,
            authority(visit) or None,
            verifies,
            follows,
            "config.uriTemplate",
        )
        world.effect(f"calls {whole.url[:300]}")
        return call(visit, request, sent, given, seconds, write)

    async def call(
        visit: Visit,
        request: Request,
        sent: _Body,
        given: list[tuple[str, str]],
        seconds: float,
        write: Callable[[bytes, str], Any],
    ) -> int:
        private = partial(may_be_private, visit.world.system)
        began_ns = time.perf_counter_ns()
        try:
            if sent.shown is not None and sent.shown[0] == "bodyUrl":
                source = Request("GET", sent.shown[1], httpx.Headers(), field="config.bodyTemplate")
                fetched = await fetch(source, timeout_s=seconds, bytes_max=ANSWER_BYTES_MAX, private=private)
                if not 200 <= fetched.status < 300:
                    raise Undelivered(f"config.bodyTemplate: this URL answered with {fetched.status}.")
                request = request._replace(body=fetched.content)
                seconds = max(0.0, seconds - (time.perf_counter_ns() - began_ns) / 1e9)
            received = await fetch(request, timeout_s=seconds, bytes_max=ANSWER_BYTES_MAX, private=private)
        except (Undelivered, Invalid) as error:
            name = "HttpTimeout" if isinstance(error, Late) else "HttpError"
            if problem is None:
                raise NodeError(name, str(error)) from None
            visit.put(problem, {"name": name, "message": str(error)})
            return 0
        is_long = len(received.content) > INLINE_JSON_BYTES
        shown = await in_thread(_shown, received, write) if is_long else _shown(received, write)
        visit.put(
            result,
            {
                **shown,
                "requestDuration": (time.perf_counter_ns() - began_ns) // 1_000_000,
                "request": _shown_request(request, sent, given),
            },
        )
        check_payload(visit)
        return 0

    return step


def _shown(received: Received, write: Callable[[bytes, str], Any]) -> dict[str, Any]:
    headers: dict[str, Any] = {name.lower(): value for name, value in received.headers.items()}
    if "set-cookie" in headers:
        headers["set-cookie"] = received.headers.get_list("set-cookie")
    codec = codec_of(headers.get("content-type", "")) or "utf-8"
    return {"statusCode": received.status, "headers": headers, "body": write(received.content, codec)}


def _shown_request(request: Request, sent: _Body, given: list[tuple[str, str]]) -> dict[str, Any]:
    """The request, without what proves who sent it."""
    headers = dict(given)
    if request.proof is not None:
        headers |= {name: _HIDDEN for name, _ in request.proof.headers}
    shown: dict[str, Any] = {"method": request.method, "uri": request.url, "headers": headers}
    if sent.shown is not None:
        shown[sent.shown[0]] = sent.shown[1]
    return shown


def _seconds(timeout: Callable[[Visit], float] | None, visit: Visit) -> float:
    seconds = TIMEOUT_S if timeout is None else timeout(visit)
    if seconds <= 0:
        raise refused(
            f"config.timeoutTemplate: gives {seconds:g}; give seconds above 0, at most {TIMEOUT_S_MAX:g}."
        )
    return min(seconds, TIMEOUT_S_MAX)


def _writer(encoding: str) -> Callable[[bytes, str], Any]:
    """Writes the body of an answer, which has a codec: JSON as its value, other bytes as a text. An encoding that is
    given comes before the codec."""
    as_text = text_writer(encoding)

    def write(content: bytes, codec: str) -> Any:
        text = as_text(content) if encoding.strip() else decoded(content, codec)
        if shows_bytes(encoding):
            return text
        try:
            return json_value(text)
        except (msgspec.DecodeError, RecursionError):
            return text

    return write


def _headers(config: Config) -> Callable[[Visit], list[tuple[str, str]]]:
    """Reads the headers; those that give nothing are left out."""
    readers: list[tuple[str, Callable[[Visit], str]]] = []
    for row in _rows(config, _HEADER_INFO):
        name = text_of(row, _KEY).strip()
        if not name or name.lower() in OF_CONNECTIONS:
            continue
        if not _TOKEN.fullmatch(name):
            raise Unusable(f"{row.place(_KEY)}: {name[:100]!r} is not the name of a header.")
        readers.append((name, text_reader(row, VALUE)))

    def read(visit: Visit) -> list[tuple[str, str]]:
        found = [(name, value(visit).strip()) for name, value in readers]
        for name, value in found:
            if has_control(value):
                raise refused(
                    f"config.headerInfo: the value of {name} has a line break or another control character."
                )
        return [(name, value) for name, value in found if value]

    return read


def _rows(config: Config, setting: RowsSetting) -> list[Config]:
    rows = list_of(config, setting)
    if len(rows) > ROWS_MAX:
        raise Unusable(f"config.{setting}: has {len(rows)} items; give at most {ROWS_MAX}.")
    return rows


def _body(config: Config, method: str) -> Callable[[Visit], _Body]:
    """Reads the body. Requests of the methods GET and HEAD have none."""
    kind = choice_of(config, _BODY_TYPE)
    if kind == "none" or method in ("GET", "HEAD"):
        return lambda _visit: _Body()
    if kind in ("multipart", "urlencoded"):
        return _form(config, kind)
    if kind == "jsonTemplate":
        return _json(config)
    text = text_reader(config, _BODY)
    if kind == "url":
        needed_template(config, _BODY)
        return lambda visit: _Body(shown=("bodyUrl", text(visit).strip()))
    encoding = text_reader(config, _REQUEST_ENCODING)

    def raw(visit: Visit) -> _Body:
        written = text(visit)
        content = bytes_written(written, encoding(visit), "config.bodyTemplate")
        return _Body(content, None, ("body", written)) if content else _Body()

    return raw


def _json(config: Config) -> Callable[[Visit], _Body]:
    value = json_reader(config, _BODY)

    def read(visit: Visit) -> _Body:
        text = str(computed(json_text, value(visit)))
        return _Body(FROM_TEXT["utf8"](text), "application/json", ("body", text))

    return read


def _form(config: Config, kind: str) -> Callable[[Visit], _Body]:
    """Reads a form; objects and arrays are written as JSON."""
    fields = [(text_reader(row, KEY), template_of(row, VALUE)) for row in _rows(config, _BODY_FIELDS)]

    def pairs(visit: Visit) -> list[tuple[str, str]]:
        found = []
        for key, template in fields:
            value = "" if template is None else template.value(visit.payload, visit.run.now_ms)
            is_json = isinstance(value, dict | list)
            text = computed(json_text, value) if is_json else text_of_value(value)
            found.append((key(visit), text))
        return found

    def urlencoded(visit: Visit) -> _Body:
        text = urlencode(pairs(visit), errors="replace")
        return _Body(text.encode(), "application/x-www-form-urlencoded;charset=utf-8", ("body", text))

    def multipart(visit: Visit) -> _Body:
        parts = [(key, (None, FROM_TEXT["utf8"](text))) for key, text in pairs(visit)]
        form = httpx.Request("POST", "http://form", files=parts)
        content = form.read()
        return _Body(content, form.headers["Content-Type"], ("body", content.decode("utf-8", "replace")))

    return urlencoded if kind == "urlencoded" else multipart
