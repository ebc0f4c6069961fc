"""A request to an experience, as it came and as it was read."""

from __future__ import annotations

from typing import NamedTuple

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.presentation.experience.sites import Address, Site
from trunkline.actors.presentation.experience.tokens import LoggedIn
from trunkline.http.experiences.answers import Surroundings
from trunkline.http.wire.headers import Headers


class WebRequest(NamedTuple):
    """A request to an experience. `path` is that within the site, percent-encoded; `prefix` what stands before it.

    `domain` is the name by which the site was found, `client` the address of who sent the request.
    """

    address: Address
    domain: str
    prefix: str
    method: str
    path: str
    query: str
    headers: Headers
    body: bytes
    secure: bool
    client: str


class Visit(NamedTuple):
    """A request that was read: what workflows and pages are told of it. `endpoint` may be `NO_ENDPOINT`.

    `token` is that of the caller, which nobody is told.
    """

    site: Site
    around: Surroundings
    endpoint: bytes
    caller: LoggedIn | None
    data: Doc
    experience: Doc
    now_ms: int
    token: str = ""
