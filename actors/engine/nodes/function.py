"""RawFunctionNode: a script of the workflow's author, which changes the payload or returns another one.

The script runs in a child process (`actors/core/scripts/`). `scopePath` is the part of the payload that the script
gets. What it writes to the console is told like messages of debug nodes.
"""

from __future__ import annotations

from typing import Final

from trunkline.actors.core.formulas.values import UNDEFINED
from trunkline.actors.core.scripts.errors import ScriptError
from trunkline.actors.engine.errors import NodeError
from trunkline.actors.engine.node_type import Form
from trunkline.actors.engine.settings import Config, LongTemplateSetting, PathSetting
from trunkline.actors.engine.tools import path_of, text_of
from trunkline.actors.engine.visit import NodeStep, Visit

TYPE: Final = "RawFunctionNode"

_SCRIPT: Final = LongTemplateSetting("script")
_SCOPE_PATH: Final = PathSetting("scopePath")
FORM: Final = Form("logic", (_SCRIPT, _SCOPE_PATH))


def prepare(config: Config) -> NodeStep:
    script, scope = text_of(config, _SCRIPT), path_of(config, _SCOPE_PATH)

    async def step(visit: Visit) -> int:
        given = visit.payload if scope is None else scope.get(visit.payload)
        error = None
        try:
            result = await visit.run.call_script(script, None if given is UNDEFINED else given)
            logs = result.logs
        except ScriptError as failed:
            error, logs = failed, failed.logs
        for line in logs:
            visit.tell(line.level, line.text, None)
        if error is not None:
            where = "" if error.line is None else f" (line {error.line} of the script)"
            raise NodeError(error.name, f"{error.message}{where}")
        if scope is None:
            visit.payload = result.value
        else:
            visit.put(scope, result.value)
        return 0

    return step
