"""SwitchNode: the output of the first case whose text is that of the switch; output 0 is the default."""

from __future__ import annotations

from typing import Any, Final

from trunkline.actors.engine.tools import list_of, needed_template, template_of
from trunkline.actors.engine.visit import NodeStep, Visit

TYPE: Final = "SwitchNode"


def prepare(config: dict[str, Any]) -> NodeStep:
    subject = needed_template(config, "switchTemplate")
    cases = [template_of(each, "caseTemplate") for each in list_of(config, "cases")]

    def step(visit: Visit) -> int:
        wanted = subject.text(visit.payload)
        for output, case in enumerate(cases, start=1):
            if wanted == ("" if case is None else case.text(visit.payload)):
                return output
        return 0

    return step
