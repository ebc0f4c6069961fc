"""What the demo shows by MQTT: an access key for the topics of its devices, and a command that uses it.

Does not own what the devices publish (`demo.py`).
"""

from __future__ import annotations

from trunkline.bench.demo import DemoReady
from trunkline.bench.demo_keys import replace_key
from trunkline.bench.session import Json, Session

TOPICS = "plant/#"
"""What selects the topics to which devices of the demo publish."""

MQTT_KEY: Json = {
    "name": "MQTT key of the demo",
    "description": "For clients that show what the devices publish. The next start of the demo replaces it.",
    "filterType": "whitelist",
    "pubTopics": [],
    "subTopics": [TOPICS],
}


async def replace_mqtt_key(token: str, demo: DemoReady) -> tuple[str, str]:
    """Make an access key whose secret is known, in place of that of an earlier start; return both.

    It may subscribe to the topics of the demo, and publish to none. Raises BenchError.
    """
    session = Session(demo.url, token=token, connections_max=1)
    try:
        return await replace_key(session, demo.application_id, MQTT_KEY)
    finally:
        session.close()


def subscribe_line(host: str, port: int, key: str, secret: str) -> str:
    """A command to try: it shows what the devices publish, as it comes."""
    return f"mosquitto_sub -h {host} -p {port} -u {key} -P {secret} -t '{TOPICS}' -v"
