"""SwitchNode: the output of the first case whose text is that of the switch; output 0 is the default."""

from __future__ import annotations

from typing import Any, Final

from trunkline.actors.engine.tools import list_of, needed_text_reader, text_reader
from trunkline.actors.engine.visit import NodeStep, Visit

TYPE: Final = "SwitchNode"


def prepare(config: dict[str, Any]) -> NodeStep:
    subject = needed_text_reader(config, "switchTemplate")
    cases = [text_reader(each, "caseTemplate") for each in list_of(config, "cases")]

    def step(visit: Visit) -> int:
        wanted = subject(visit)
        for output, case in enumerate(cases, start=1):
            if wanted == case(visit):
                return output
        return 0

    return step
