"""NumPy, which computes with the states of devices. A server without applications does not load it."""

from __future__ import annotations

from trunkline.actors.core.runtime.late_imports import load


async def load_arrays() -> None:
    """Import NumPy beside the event loop, if it is not there: whoever makes an application awaits this before."""
    await load("numpy")
