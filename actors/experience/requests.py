"""The actor of an endpoint's requests: its mailbox has the throttle, and its turns stage what a request triggers.

There is one for each endpoint of an application, in all versions, and one for the requests that no endpoint serves.
"""

from __future__ import annotations

from typing import ClassVar

from trunkline.actors.runtime.actor import Actor
from trunkline.actors.values.structs import Message


class TakeRequest(Message, frozen=True):
    """Take a request to an endpoint."""

    throttle: ClassVar[str | None] = "endpoint_request"


class EndpointRequests(Actor):
    """The requests to one endpoint. `ref.parent` is the application, `ref.id` the endpoint, or `NO_ENDPOINT`."""

    kind: ClassVar[str] = "endpointRequests"
    noun: ClassVar[str] = "experience endpoint"

    __slots__ = ()

    def load(self) -> bool:
        return True  # whoever asks has found the endpoint

    def on_take_request(self, message: TakeRequest) -> None:
        """Take a request."""
