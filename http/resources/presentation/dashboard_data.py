"""The data of dashboards: what their blocks show, for clients that draw them.

A caller with a token has the authority of the token for each application of the blocks. A public dashboard is read
without a token with the authority of its owner, and only as the dashboard says.
"""

from __future__ import annotations

import hashlib

import msgspec
from msgspec import UNSET

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.nesting import check_nesting
from trunkline.actors.core.values.timestamps import iso, resolve_range
from trunkline.actors.presentation.dashboards.block_data import by_process
from trunkline.actors.presentation.dashboards.block_messages import (
    BlockPreview,
    BlockQuery,
    DashboardData,
    ReadBlocks,
)
from trunkline.actors.presentation.dashboards.messages import DashboardPassword
from trunkline.actors.presentation.dashboards.reads import Held
from trunkline.http.calls.call import Call
from trunkline.http.calls.public_answers import Answer
from trunkline.http.calls.request import Response
from trunkline.http.calls.responses import json_response
from trunkline.http.calls.route import APP_PATH
from trunkline.http.calls.verbs import post
from trunkline.http.resources.presentation.dashboard_rights import refusals
from trunkline.http.resources.presentation.dashboards import (
    DASHBOARD_PATH,
    PASSWORD_ERRORS,
    find_in_application,
    find_reached,
    find_readable,
)

_PATH = DASHBOARD_PATH + "/data"
_PREVIEW = "/preview"
_REFRESH_S = 60
"""How long the data of a public dashboard without a `refreshRate` are kept."""
_DATA_ERRORS = {
    **PASSWORD_ERRORS,
    429: "Too many wrong passwords, or too many answers for readers without a token",
}


async def read_data(call: Call) -> Response:
    """Read what the blocks of a dashboard show: values, tables, and charts of at most 2,000 points a line.

    A block that cannot be read says so in `problem`. Without a token the answer is kept for the `refreshRate` of the
    dashboard, or for a minute; `duration`, `resolution` and `end` need a token, and so do values of parameters without
    `validationEnabled`.
    """
    held = await (find_in_application(call) if "application" in call.ids else find_readable(call))
    body: BlockQuery = call.body or BlockQuery()
    blocks = held.found.doc["blocks"]
    positions = _positions(blocks, body)
    if call.is_anonymous:
        answer = await _public_answer(call, held, body, positions)
    else:
        answer = await _read_blocks(call, held, body, positions)
    return _shown(call, held, answer)


async def preview(call: Call) -> Response:
    """Read what blocks would show in a dashboard, before they are stored. Nothing is changed.

    The answer is that of `data`, with the blocks in the order of the call. It needs the rights that a change of the
    dashboard needs. Each block is read with what the caller reaches; one that cannot be read says so in `problem`.
    """
    held = await (find_in_application(call) if "application" in call.ids else find_reached(call))
    body: BlockPreview = call.body
    doc: Doc = {**held.found.doc, "blocks": msgspec.to_builtins(body.blocks)}
    for position, block in enumerate(doc["blocks"]):
        check_nesting(block.get("config"), f"blocks[{position}].config")
    draft = held._replace(found=held.found._replace(doc=doc))
    answer = await _read_blocks(call, draft, body, tuple(range(len(doc["blocks"]))))
    return _shown(call, held, answer)


def _shown(call: Call, held: Held, answer: Answer) -> Response:
    """The answer with the blocks in the order of their positions."""
    shown = {
        "dashboardId": held.found.id.hex(),
        "lastUpdated": iso(held.found.doc["lastUpdated"]),
        "time": iso(answer.time_ms),
        "blocks": [answer.value[position] for position in sorted(answer.value)],
    }
    return json_response(call, 200, shown)


def _positions(blocks: list[Doc], body: BlockQuery) -> tuple[int, ...]:
    """The positions of the blocks that a call asks for. Raises `Invalid` for an unknown id."""
    if body.block_ids is UNSET:
        return tuple(range(len(blocks)))
    known = {block["id"] for block in blocks if "id" in block}
    for number, id in enumerate(body.block_ids):
        if id not in known:
            raise Invalid(f"blockIds[{number}]: the dashboard has no block with the id {id!r}.")
    return tuple(number for number, block in enumerate(blocks) if block.get("id") in body.block_ids)


async def _read_blocks(
    call: Call, held: Held, body: BlockQuery | BlockPreview, positions: tuple[int, ...]
) -> Answer:
    end = None if body.end is UNSET else body.end
    time_ms = min(resolve_range(call.now_ms, end=end).end_ms, call.now_ms)
    given = {"duration": body.duration, "resolution": body.resolution}
    message = ReadBlocks(
        holder=held.holder,
        doc=held.found.doc,
        positions=positions,
        ctx={} if body.ctx is UNSET else msgspec.to_builtins(body.ctx),
        refusals=refusals(call, held),
        range={name: value for name, value in given.items() if value is not UNSET},
        time_ms=time_ms,
        with_ids=not call.is_anonymous,
    )
    found: dict[int, msgspec.Raw] = {}
    for application, of_it in by_process(
        call.service.system, held.holder, held.found.doc["blocks"], positions
    ).items():
        part = msgspec.structs.replace(message, positions=of_it)
        peers = call.service.system.peers
        if application is None or peers is None:
            found |= await call.service.read_message(part)
        else:
            found |= await peers.read(application, part)
    return Answer(time_ms, found, sum(map(len, found.values())))


async def _public_answer(call: Call, held: Held, body: BlockQuery, positions: tuple[int, ...]) -> Answer:
    """The data of the blocks at these positions, for readers without a token."""
    for name in ("duration", "resolution", "end"):
        if getattr(body, name) is not UNSET:
            raise Invalid(f"{name}: needs a token that reaches the dashboard; leave it out.")
    doc, ctx = held.found.doc, {} if body.ctx is UNSET else msgspec.to_builtins(body.ctx)
    free = {each["name"] for each in doc["contextConfiguration"] if each.get("validationEnabled")}
    known = {each["name"] for each in doc["contextConfiguration"]}
    for name in ctx:
        if name in known - free:
            raise Invalid(
                f"ctx.{name}: needs a token, because its parameter has no validationEnabled; leave it out."
            )
    body = BlockQuery(ctx={name: value for name, value in (body.ctx or {}).items() if name in known})
    refused = sorted((id.hex(), operation) for id, operation in refusals(call, held))
    asked = msgspec.json.encode([held.found.revision, refused, positions, body.ctx], order="sorted")
    service = call.service
    return await service.public_answers.get(
        held.found.id,
        hashlib.blake2b(asked, digest_size=16).digest(),
        doc.get("refreshRate", _REFRESH_S),
        service.system.clock.monotonic_s,
        lambda: _read_blocks(call, held, body, positions),
    )


ROUTES = (
    post(
        _PATH,
        "dashboard.data",
        "Read what the blocks of a dashboard show; without a token if it is public",
        read_data,
        query=DashboardPassword,
        body=BlockQuery,
        optional_body=True,
        reply=DashboardData,
        area="organization",
        anonymous=True,
        also=_DATA_ERRORS,
        access="read",
        only_reads=True,
    ),
    post(
        APP_PATH + _PATH,
        "applicationDashboard.data",
        "Read what the blocks of a dashboard show",
        read_data,
        body=BlockQuery,
        optional_body=True,
        reply=DashboardData,
        access="read",
        only_reads=True,
    ),
    post(
        DASHBOARD_PATH + _PREVIEW,
        "dashboard.preview",
        "Read what blocks would show in a dashboard, before they are stored",
        preview,
        body=BlockPreview,
        reply=DashboardData,
        area="organization",
        only_reads=True,
    ),
    post(
        APP_PATH + DASHBOARD_PATH + _PREVIEW,
        "applicationDashboard.preview",
        "Read what blocks would show in a dashboard, before they are stored",
        preview,
        body=BlockPreview,
        reply=DashboardData,
        only_reads=True,
    ),
)
