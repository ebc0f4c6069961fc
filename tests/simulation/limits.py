"""The limits of simulated servers: as delivered, but with what is rare there made frequent."""

from __future__ import annotations

from typing import Final

from trunkline.limits.table import Limits

CALLS, WINDOW_S = 6, 3.0
KEEP_DAYS: Final = 1
"""After so long what a device has reported may be removed; a run is shorter."""
_MANY: Final = {"calls": 1000, "window_s": 1.0}
LIMITS: Final = Limits().override(
    {
        "send_state": {"calls": CALLS, "window_s": WINDOW_S},
        "send_command": {"calls": CALLS, "window_s": WINDOW_S},
        "set_connection_status": _MANY,
        "verify_email": _MANY,
        "event_create": _MANY,
        "mqtt_publish": _MANY,
        "mqtt_topic": _MANY,
        "mqtt_client": _MANY,
        "mqtt_connect": _MANY,
        "login_per_account": _MANY,
        "login_per_address": _MANY,
        "actor_idle_s": 20,
        "run_attempts_max": 1000,
        "arrival_window_bytes": 1 << 16,
        "arrival_flush_s": 10,
        "state_keep_days": KEEP_DAYS,
        "retention_interval_s": 60,
    }
)
