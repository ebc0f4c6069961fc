"""What this platform is called, for clients that also work with branded ones: its addresses."""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec

from trunkline.actors.core.contents.contents import Contents
from trunkline.actors.core.values.structs import View
from trunkline.actors.presentation.experience.sites import Sites
from trunkline.http.calls.call import Call
from trunkline.http.calls.request import Response
from trunkline.http.calls.responses import json_response
from trunkline.http.calls.verbs import get


class PlatformView(View, frozen=True):
    """The addresses of a platform that is not branded: every host of it gets the same answer."""

    api_url: str
    app_url: str
    """A path such as /applications/ID behind it is the page of an application."""
    endpoint_domain: str
    """`https://SLUG.` and this, with the port where it is not the usual one, is an experience."""


async def get_platform(call: Call) -> Response:
    """The addresses of this server: of the API, of the console, and what follows the slug of an experience.

    This server has no brands, so the answer is the same for each host by which it is asked.
    """
    system = call.service.system
    base_url = system.component(Contents).signatures.base_url
    port = urlsplit(base_url).port
    view = PlatformView(
        api_url=base_url,
        app_url=f"{base_url}/console#",
        endpoint_domain=system.component(Sites).suffix + (f":{port}" if port else ""),
    )
    return json_response(call, 200, msgspec.to_builtins(view))


ROUTES = (
    get(
        "/whitelabels/domain",
        "whitelabels.domain",
        "Get the addresses of this platform",
        get_platform,
        PlatformView,
        access="none",
    ),
)
