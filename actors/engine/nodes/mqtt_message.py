"""MqttMessageNode: publishes a message to a topic of the application, or to the MQTT broker of an integration.

What it publishes to the application happens once, also if the run is repeated after a crash; to a broker at least once.
"""

from __future__ import annotations

from typing import Any, Final

from trunkline.actors.connections.integrations.connections import Connections
from trunkline.actors.connections.integrations.session import Unsent
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.ids import is_id
from trunkline.actors.data.topics.actor import Publisher
from trunkline.actors.data.topics.messages import PublishInRun
from trunkline.actors.engine.errors import NodeError
from trunkline.actors.engine.node_rights import may_write
from trunkline.actors.engine.node_type import Form
from trunkline.actors.engine.settings import Config, LongTemplateSetting, TemplateSetting, TextSetting
from trunkline.actors.engine.tools import Unusable, needed_text_reader, text_of, text_reader
from trunkline.actors.engine.visit import NodeStep, Visit, refused
from trunkline.actors.workflows.flows.triggers import OWN_BROKER

TYPE: Final = "MqttMessageNode"

_TOPIC: Final = TemplateSetting("topicTemplate", is_needed=True)
_MESSAGE: Final = LongTemplateSetting("messageTemplate")
_INTEGRATION_ID: Final = TextSetting("integrationId")
FORM: Final = Form("output", (_TOPIC, _MESSAGE, _INTEGRATION_ID))
NEEDS: Final = (may_write("application.mqttPublishMessage"),)


def prepare(config: Config) -> NodeStep:
    topic, message = needed_text_reader(config, _TOPIC), text_reader(config, _MESSAGE)
    broker = text_of(config, _INTEGRATION_ID).strip()
    integration = b"" if broker in OWN_BROKER else _id(broker)

    async def step(visit: Visit) -> Any:
        world, content = visit.world, message(visit).encode("utf-8", "replace")
        bytes_max = world.system.limits.integration_message_bytes_max
        if len(content) > bytes_max:
            raise refused(
                f"config.messageTemplate: gives {len(content)} bytes; a message has at most {bytes_max}."
            )
        text = content.decode()
        if integration:
            world.effect("publishes to a broker")
            connections = world.system.component(Connections)
            try:
                await connections.publish(world.application, integration, topic(visit), text)
            except Unsent as unsent:
                raise NodeError("NotPublished", f"The message was not published: {unsent}") from None
        else:
            publish = PublishInRun(topic=topic(visit), message=text, origin=world.origin)
            await visit.ask(Ref(Publisher.kind, world.application, world.flow), publish)
        return 0

    return step


def _id(text: str) -> bytes:
    if not is_id(text):
        raise Unusable(f"config.integrationId: is {text!r}; give losant, or the id of an integration.")
    return bytes.fromhex(text)
