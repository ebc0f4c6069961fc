"""SwitchNode: the output of the first case whose text is that of the switch; output 0 is the default."""

from __future__ import annotations

from typing import Final

from trunkline.actors.engine.node_type import Form
from trunkline.actors.engine.settings import Config, RowsSetting, TemplateSetting
from trunkline.actors.engine.tools import list_of, needed_text_reader, text_reader
from trunkline.actors.engine.visit import NodeStep, Visit

TYPE: Final = "SwitchNode"

_SWITCH: Final = TemplateSetting("switchTemplate", is_needed=True)
_CASE: Final = TemplateSetting("caseTemplate")
_CASES: Final = RowsSetting("cases", _CASE, TemplateSetting("caseLabel", is_shown=False))
FORM: Final = Form("logic", (_SWITCH, _CASES))


def prepare(config: Config) -> NodeStep:
    subject = needed_text_reader(config, _SWITCH)
    cases = [text_reader(each, _CASE) for each in list_of(config, _CASES)]

    def step(visit: Visit) -> int:
        wanted = subject(visit)
        for output, case in enumerate(cases, start=1):
            if wanted == case(visit):
                return output
        return 0

    return step
