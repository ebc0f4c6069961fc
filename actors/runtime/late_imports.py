"""Imports of what few servers use, at its first use and beside the event loop.

The idiom: a library that is large stands at the top of the modules that speak it, as everywhere. Whoever uses such a
module awaits `load` with its name, and then imports it in the function, which finds it. So a start does not pay for it,
the loop does not wait for it, and types are checked as with any other import.
"""

from __future__ import annotations

import sys
from importlib import import_module

import trio


async def load(module: str) -> None:
    """Import a module in a thread, if it is not there yet."""
    if module not in sys.modules:
        await trio.to_thread.run_sync(import_module, module)
