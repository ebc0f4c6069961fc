"""A page with elements: handles of its objects, keys that are pressed, and waiting for what is not there yet."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import trio

from tests.e2e.browser import Page, ProtocolError

STEP_S: Final = 60
"""Seconds that one operation waits."""

GROUP: Final = "looked for"
"""The handles of elements, which are released after each operation: they would keep what the page drops."""

T = TypeVar("T")
_KEYS: Final = {
    "Enter": 13,
    "Escape": 27,
    "Tab": 9,
    "Backspace": 8,
    "Delete": 46,
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
    "Home": 36,
    "End": 35,
    "PageUp": 33,
    "PageDown": 34,
}
_MODIFIERS: Final = {"Alt": 1, "Control": 2, "Meta": 4, "Shift": 8}
_TEXTS: Final = {"Enter": "\r", "Tab": "\t"}


_SHOWN: Final = "`${location.hash}\\n${document.body.innerText}`"


class ElementPage(Page):
    """A page whose elements are used."""

    async def press(self, keys: str) -> None:
        """Press a key (`Enter`, `a`, `?`), also with others that are held (`Control+k`)."""
        *held, key = keys.split("+") if len(keys) > 1 else [keys]
        modifiers = sum(_MODIFIERS[each] for each in held)
        code = _KEYS.get(key) or ord(key.upper())
        text = _TEXTS.get(key, key if len(key) == 1 else "")
        given: dict[str, Any] = {"key": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        if len(key) == 1 and key.isalpha():
            given["code"] = f"Key{key.upper()}"
        if text and not modifiers & ~_MODIFIERS["Shift"]:
            given["text"] = text
        await self.command("Input.dispatchKeyEvent", type="keyDown", **given)
        given.pop("text", None)
        await self.command("Input.dispatchKeyEvent", type="keyUp", **given)

    async def type(self, text: str) -> None:
        """Press the key of each character."""
        for character in text:
            await self.press(character)

    async def soon(self, look: Callable[[], Awaitable[T]], wanted: str) -> T:
        """What `look` finds, as soon as it is true. An element that vanishes meanwhile is looked for again."""
        with trio.move_on_after(STEP_S):
            while True:
                try:
                    if found := await look():
                        await self.command("Runtime.releaseObjectGroup", objectGroup=GROUP)
                        return found
                except ProtocolError:
                    pass
                await self.run("new Promise((done) => setTimeout(done, 20))")
        raise AssertionError(f"{wanted}: not there. The page shows:\n{await self.run(_SHOWN)}")

    async def handle(self, expression: str) -> str:
        """A handle of the object that an expression is."""
        return str(
            (await self.command("Runtime.evaluate", expression=expression, objectGroup=GROUP))["result"][
                "objectId"
            ]
        )

    async def function(self, handle: str, script: str, *arguments: Any) -> Any:
        """The value of a function with an object as its `this`."""
        given = [{"value": each} for each in arguments]
        answer = await self.command(
            "Runtime.callFunctionOn",
            objectId=handle,
            functionDeclaration=script,
            arguments=given,
            returnByValue=True,
            awaitPromise=True,
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def handles(self, handle: str, script: str, *arguments: Any) -> list[str]:
        """Handles of the items of an array that a function makes of an object."""
        given = [{"value": each} for each in arguments]
        answer = await self.command(
            "Runtime.callFunctionOn",
            objectId=handle,
            functionDeclaration=script,
            arguments=given,
            objectGroup=GROUP,
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        items = await self.command(
            "Runtime.getProperties", objectId=answer["result"]["objectId"], ownProperties=True
        )
        return [each["value"]["objectId"] for each in items["result"] if each["name"].isdecimal()]
