"""Imports of what few servers use, at its first use and beside the event loop.

The idiom: a library that is large stands at the top of the modules that speak it, as everywhere. Whoever uses such a
module awaits `load` with its name, and then imports it in the function, which finds it. So a start does not pay for it,
the loop does not wait for it, and types are checked as with any other import.

A library that many modules import, but that is used only later, is put off for the process (`put_off`): these modules
import it at their top as ever, and the first use of a name of it imports it. They must not use it while they are
imported themselves. `load` imports it beside the loop before its first use.
"""

from __future__ import annotations

import sys
import threading
from importlib import import_module
from types import ModuleType
from typing import Any

import trio

_completing = threading.RLock()


class _LateModule(ModuleType):
    """Stands for a module until a name of it is used; then it has the names of the module, and is like any other."""

    def __getattr__(self, name: str) -> Any:
        _complete(self)
        return getattr(self, name)


def _complete(late: _LateModule) -> None:
    with _completing:
        if type(late) is not _LateModule:  # another thread was faster
            return
        name = late.__name__
        if sys.modules.get(name) is late:
            del sys.modules[name]
        vars(late).update(vars(import_module(name)))
        late.__class__ = ModuleType  # type: ignore[assignment]


def put_off(library: str) -> None:
    """From now on whoever imports this library gets it at the first use of a name, unless it is there already."""
    if library not in sys.modules:
        sys.modules[library] = _LateModule(library)


async def load(module: str) -> None:
    """Import a module in a thread, if it is not there yet."""
    there = sys.modules.get(module)
    if there is None:
        await trio.to_thread.run_sync(import_module, module)
    elif type(there) is _LateModule:
        await trio.to_thread.run_sync(_complete, there)
