"""A real MQTT broker for tests: rumqttd in a process of its own, on ports of 127.0.0.1."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from iotcore import Broker

from tests.patience import PATIENCE_S
from tests.ports import reserved_port

PASSWORD: Final = "right"

_ROUTER: Final = """
id = 0
[router]
id = 0
max_connections = 100
max_outgoing_packet_count = 200
max_segment_size = 4194304
max_segment_count = 10
"""
_LISTENER: Final = """
[{section}]
name = "{section}"
listen = "127.0.0.1:{port}"
next_connection_delay_ms = 1
[{section}.connections]
connection_timeout_ms = 60000
max_payload_size = 1000000
max_inflight_count = 100
dynamic_filters = true
{more}
"""


class Ports(NamedTuple):
    """Where the broker listens: MQTT 3.1.1, MQTT 5, MQTT 3.1.1 by WebSocket, and for the user `ada` only."""

    v3: int
    v5: int
    websocket: int
    guarded: int


@contextmanager
def running_broker(directory: Path) -> Iterator[Ports]:
    """Run a broker while the body runs."""
    with ExitStack() as stack:
        ports = Ports(*(stack.enter_context(reserved_port()) for _ in Ports._fields))
        sections = (
            ("v4.1", ports.v3, ""),
            ("v5.1", ports.v5, ""),
            ("ws.1", ports.websocket, ""),
            ("v4.2", ports.guarded, f'auth = {{ ada = "{PASSWORD}" }}'),
        )
        text = _ROUTER + "".join(
            _LISTENER.format(section=section, port=port, more=more) for section, port, more in sections
        )
        config = directory / "broker.toml"
        config.write_text(text, encoding="utf-8")
        broker = Broker(config_path=str(config))
        stack.callback(broker.stop)
        broker.start(timeout=PATIENCE_S)
        yield ports
