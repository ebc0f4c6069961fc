"""ThrottleNode: output 1 if enough time has passed since it was last taken, else output 0.

The time between is that of `ratePerMinute`, so 2 is once in 30 seconds; up to 600. `throttleIdTemplate` makes a
throttle of its own for each text, such as `{{data.deviceId}}`. `timeSincePath` gets the milliseconds since output 1 was
last taken, null before the first time. The time is that of the server, and is kept with the storage of the workflow. If
the clock is set back, output 1 is taken.
"""

from __future__ import annotations

from typing import Final

from trunkline.actors.engine.node_rights import WRITES
from trunkline.actors.engine.node_type import Form
from trunkline.actors.engine.settings import Config, NumberSetting, PathSetting, TemplateSetting
from trunkline.actors.engine.tools import Unusable, number_reader, path_of, text_reader
from trunkline.actors.engine.visit import NodeStep, Visit, refused
from trunkline.actors.workflows.flows.storage_messages import PassThrottle

TYPE: Final = "ThrottleNode"

_RATE_PER_MINUTE: Final = NumberSetting("ratePerMinute", is_needed=True)
_THROTTLE_ID: Final = TemplateSetting("throttleIdTemplate")
_TIME_SINCE_PATH: Final = PathSetting("timeSincePath")
FORM: Final = Form("logic", (_RATE_PER_MINUTE, _THROTTLE_ID, _TIME_SINCE_PATH))
NEEDS: Final = WRITES

RATE_MAX: Final = 600
"""The format's limit: ten a second."""


def prepare(config: Config) -> NodeStep:
    rate, id = number_reader(config, _RATE_PER_MINUTE), text_reader(config, _THROTTLE_ID)
    since_path = path_of(config, _TIME_SINCE_PATH)
    if rate is None:
        raise Unusable(f"config.ratePerMinute: is not set; give a number above 0, at most {RATE_MAX}.")

    async def step(visit: Visit) -> int:
        per_minute = rate(visit)
        if not 0 < per_minute <= RATE_MAX:
            raise refused(
                f"config.ratePerMinute: gives {per_minute}; give a number above 0, at most {RATE_MAX}."
            )
        message = PassThrottle(node=visit.state_name(id(visit)), every_ms=60_000 / per_minute)
        passes, since_ms = await visit.ask_flow(message)
        visit.put(since_path, since_ms)
        return int(passes)

    return step
