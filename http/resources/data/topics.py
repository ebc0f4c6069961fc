"""Routes: messages of an application's topics, published and streamed."""

from __future__ import annotations

from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.data.topics.actor import Publisher
from trunkline.actors.data.topics.messages import (
    ListSleepingClients,
    MqttClientList,
    MqttClientPage,
    Publish,
    PublishPost,
    TopicMessage,
    TopicStream,
)
from trunkline.http.calls.call import Call
from trunkline.http.calls.errors import JSON, rate_limit
from trunkline.http.calls.request import Response
from trunkline.http.calls.responses import SUCCESS, json_response
from trunkline.http.calls.route import APP_PATH
from trunkline.http.calls.verbs import get, post, stream
from trunkline.http.mqtt.client_list import list_clients
from trunkline.http.streams.sse import topic_stream


async def publish(call: Call) -> Response:
    """Publish a message. Each caller, a user or an API token, has a throttle of its own."""
    service = call.service
    service.system.check_load()
    ref = Ref(Publisher.kind, call.application, bytes.fromhex(call.principal.creator.id))
    answer = await service.system.ask(ref, service.message(call, Publish))
    headers = [JSON]
    if answer.verdict is not None:
        headers += rate_limit("mqtt_publish", answer.verdict)
    return Response(200, headers, SUCCESS)


async def get_clients(call: Call) -> Response:
    """List the MQTT clients of the application: the connected ones are in memory, the sleeping ones in the store."""
    if call.query.state == "sleeping":
        message = ListSleepingClients(application=call.application, query=call.query)
        return json_response(call, 200, await call.service.read_message(message))
    return json_response(call, 200, list_clients(call.service.system, call.application, call.query))


ROUTES = (
    get(
        APP_PATH + "/mqttClients",
        "application.mqttClients",
        "List the MQTT clients that are connected, those first that connected last; or those that sleep",
        get_clients,
        MqttClientList,
        query=MqttClientPage,
    ),
    post(
        APP_PATH + "/mqttPublishMessage",
        "application.mqttPublishMessage",
        "Publish a message to a topic of the application",
        Publish,
        handler=publish,
        body=PublishPost,
        also={429: "More calls of this user or API token than RateLimit-Policy allows in its window"},
    ),
    stream(
        APP_PATH + "/mqttSubscriptionStream",
        "application.mqttSubscriptionStream",
        "Stream the messages of topics of the application",
        topic_stream,
        ("mqttMessage", TopicMessage),
        query=TopicStream,
    ),
)
