"""WebsocketMessageNode: sends a message to the WebSocket server of an integration, at least once.

The message is a text, or, where `encodingTemplate` is not utf8, the bytes that the text stands for. The integration has
to be connected, or to be connected soon: messages are not kept for later.
"""

from __future__ import annotations

from typing import Any, Final

from trunkline.actors.connections.integrations.connections import Connections
from trunkline.actors.connections.integrations.session import Unsent
from trunkline.actors.core.values.ids import is_id
from trunkline.actors.engine.encodings import bytes_written, is_utf8
from trunkline.actors.engine.errors import NodeError
from trunkline.actors.engine.node_rights import WRITES
from trunkline.actors.engine.node_type import Form
from trunkline.actors.engine.settings import Config, LongTemplateSetting, TemplateSetting
from trunkline.actors.engine.tools import needed_text_reader, shortened, text_reader
from trunkline.actors.engine.visit import NodeStep, Visit, refused

TYPE: Final = "WebsocketMessageNode"

_INTEGRATION_ID: Final = TemplateSetting("integrationId", is_needed=True)
_MESSAGE: Final = LongTemplateSetting("messageTemplate", is_needed=True)
_ENCODING: Final = TemplateSetting("encodingTemplate")
FORM: Final = Form("output", (_INTEGRATION_ID, _MESSAGE, _ENCODING))
NEEDS: Final = WRITES


def prepare(config: Config) -> NodeStep:
    id, message = needed_text_reader(config, _INTEGRATION_ID), needed_text_reader(config, _MESSAGE)
    encoding = text_reader(config, _ENCODING)

    async def step(visit: Visit) -> Any:
        integration, name = _id(id(visit).strip()), encoding(visit)
        content = bytes_written(message(visit), name, "config.messageTemplate")
        world = visit.world
        bytes_max = world.system.limits.integration_message_bytes_max
        if len(content) > bytes_max:
            raise refused(
                f"config.messageTemplate: gives {len(content)} bytes; a message has at most {bytes_max}."
            )
        world.effect("sends a message to an integration")
        connections = world.system.component(Connections)
        try:
            await connections.send(world.application, integration, content, is_text=is_utf8(name))
        except Unsent as unsent:
            raise NodeError("NotSent", f"The message was not sent: {unsent}") from None
        return 0

    return step


def _id(text: str) -> bytes:
    if not is_id(text):
        raise refused(f"config.integrationId: gives {shortened(text)}; give the id of an integration.")
    return bytes.fromhex(text)
