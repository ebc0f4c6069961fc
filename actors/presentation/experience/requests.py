"""The actor of an endpoint's requests: its mailbox has the throttle, and its turns stage what a request triggers.

There is one for each endpoint of an application, in all versions, and one for the requests that no endpoint serves.

Workflows of the class experience run in the version with the name of the version of the experience. Those of the class
cloud run in their default version, or in the one that the request names; their triggers may name the version of the
experience.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.values.origin import PUBLIC, Origin
from trunkline.actors.core.values.structs import Message
from trunkline.actors.presentation.experience.kind import NO_ENDPOINT
from trunkline.actors.workflows.triggers.index import FlowIndex, Watcher
from trunkline.actors.workflows.triggers.intake import Cause, stage
from trunkline.actors.workflows.triggers.replies import Replies

TRIGGER = "endpoint"


class TakeRequest(Message, frozen=True):
    """Take a request to an endpoint; the answer is the number of workflows that it triggers.

    `version` is that of the experience. If the endpoint does not serve the request, only triggers of any endpoint
    count. `data` and `more` are fields of the payload.
    """

    throttle: ClassVar[str | None] = "endpoint_request"

    version: str
    flow_version: str | None
    is_served: bool
    id: str
    data: Doc
    more: Doc
    user: bytes | None
    time_ms: int


class EndpointRequests(Actor):
    """The requests to one endpoint. `ref.parent` is the application, `ref.id` the endpoint, or `NO_ENDPOINT`."""

    kind: ClassVar[str] = "endpointRequests"
    noun: ClassVar[str] = "experience endpoint"

    __slots__ = ()

    def load(self) -> bool:
        return True  # whoever asks has found the endpoint

    def on_take_request(self, message: TakeRequest) -> int:
        """Stage the triggers of a request."""
        watchers = list(self._watchers(message))
        if watchers:
            user = message.user
            cause = Cause(
                # Requests to one endpoint need not wait for each other.
                trigger_id=message.id,
                data=message.data,
                time_ms=message.time_ms,
                more={**message.more, "triggerId": self.ref.id.hex()},
                origin=PUBLIC if user is None else Origin(user.hex(), "experienceUser"),
            )
            runs = stage(self, watchers, cause)
            self.system.component(Replies).count_runs(self.ref.parent, message.id, len(runs))
        return len(watchers)

    def _watchers(self, message: TakeRequest) -> Iterator[Watcher]:
        index, application = self.system.component(FlowIndex), self.ref.parent
        keys = dict.fromkeys(
            [self.ref.id.hex(), NO_ENDPOINT.hex()] if message.is_served else [NO_ENDPOINT.hex()]
        )
        versions = (None, "", message.version)
        of_version = index.of_name(application, message.version)
        others = index.of(application, message.flow_version)
        for key in keys:
            yield from (each for each in of_version.get(TRIGGER, key) if each.flow_class == "experience")
            for each in others.get(TRIGGER, key):
                if each.flow_class == "cloud" and each.config.get("experienceVersion") in versions:
                    yield each
