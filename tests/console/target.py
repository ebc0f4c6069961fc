"""An element of a page, found by what it is called and used by mouse and keyboard.

It is found by its role and accessible name, as a screen reader finds it, or by a CSS selector. All operations wait
until they are possible, and say what the page shows if that does not come.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from tests.console.element_page import GROUP, ElementPage

Name = str | re.Pattern[str] | None

_PLACE: Final = """async function (press) {
    if (!this.isConnected || this.disabled || this.ariaDisabled === "true") return null;
    this.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    const place = () => [...this.getClientRects()].find((each) => each.width && each.height);
    const before = place();
    await frame();
    const now = place();
    if (!before || !now || before.x !== now.x || before.y !== now.y) return null;
    const at = { x: now.x + now.width / 2, y: now.y + now.height / 2 };
    const labels = [...(this.labels ?? [])];
    const meant = (hit) => hit instanceof Node && [this, ...labels].some((each) => each.contains(hit));
    if (!meant(document.elementFromPoint(at.x, at.y))) return null;
    if (press) {
        const types = ["mousedown", "mouseup", "click"];
        let missed = false;
        const guard = (event) => {
            if (event.type !== "click" && !meant(event.target)) missed = true;
            if (!missed) return;
            event.stopImmediatePropagation();
            event.preventDefault();
        };
        for (const each of types) addEventListener(each, guard, true);
        globalThis.pressed = () => {
            for (const each of types) removeEventListener(each, guard, true);
            return !missed;
        };
    }
    return { ...at, left: now.x, top: now.y, width: now.width, height: now.height };
}"""
"""Where an element can be clicked: in view, still, enabled, and covered by nothing.

With `press`, a click that something else gets, because the page moved meanwhile, is stopped, and `pressed()` is false.
"""

_MIDDLE: Final = """function () {
    const now = this.getBoundingClientRect();
    const at = { x: now.x + now.width / 2, y: now.y + now.height / 2 };
    return this.contains(document.elementFromPoint(at.x, at.y)) ? at : null;
}"""
"""Where the middle of an element is, without moving the page."""

_SELECT: Final = """function () {
    this.select?.();
    return document.activeElement === this;
}"""
_TEXT: Final = "function () { return { text: this.innerText ?? this.textContent }; }"


class Target:
    """An element that is looked for again at each use, so it may be rendered anew between them."""

    def __init__(
        self, page: ElementPage, within: Target | None, role: str, name: Name, css: str, nth: int
    ) -> None:
        self._page = page
        self._within = within
        self._role, self._name, self._css, self._nth = role, name, css, nth

    def __str__(self) -> str:
        name = "" if self._name is None else f" {getattr(self._name, 'pattern', self._name)!r}"
        number = f" (number {self._nth})" if self._nth else ""
        inside = f" in {self._within}" if self._within else ""
        return f"{self._css or self._role}{name}{number}{inside}"

    def at(self, role: str = "", name: Name = None, *, css: str = "", nth: int = 0) -> Target:
        """An element within this one."""
        return Target(self._page, self, role, name, css, nth)

    async def click(self, *, count: int = 1) -> None:
        """Click it in its middle, with the mouse; `count` 2 is a double click."""

        async def press() -> bool:
            found = await self._find()
            place = found and await self._page.function(found, _PLACE, True)
            if not place:
                return False
            at = {"x": place["x"], "y": place["y"]}
            await self._page.command("Input.dispatchMouseEvent", type="mouseMoved", **at)
            for number in range(1, count + 1):
                for type in ("mousePressed", "mouseReleased"):
                    await self._page.command(
                        "Input.dispatchMouseEvent", type=type, button="left", clickCount=number, **at
                    )
            return bool(await self._page.run("globalThis.pressed?.() ?? true"))

        await self._page.soon(press, str(self))

    async def press(self, keys: str) -> None:
        """Focus it, and press a key."""
        await self._call("function () { this.focus(); return document.activeElement === this; }")
        await self._page.press(keys)

    async def hover(self) -> None:
        """Move the mouse to its middle."""
        place = await self._place()
        await self._page.command("Input.dispatchMouseEvent", type="mouseMoved", x=place["x"], y=place["y"])

    async def drag(self, start: float, end: float) -> None:
        """Press the mouse at a part of its width, move it to another, and release it; 0 is its left, 1 its right."""
        place = await self._place()
        steps = [start, start + (end - start) / 2, end]
        points = [{"x": place["left"] + place["width"] * each, "y": place["y"]} for each in steps]
        press: dict[str, Any] = {"button": "left", "clickCount": 1}
        await self._page.command("Input.dispatchMouseEvent", type="mouseMoved", **points[0])
        await self._page.command("Input.dispatchMouseEvent", type="mousePressed", **points[0], **press)
        for point in points[1:]:
            await self._page.command("Input.dispatchMouseEvent", type="mouseMoved", buttons=1, **point)
        await self._page.command("Input.dispatchMouseEvent", type="mouseReleased", **points[-1], **press)

    async def drag_to(self, target: Target, *, x: float = 0, y: float = 0) -> None:
        """Press the mouse in its middle, and release it so many px from the middle of another element."""
        start = await self._place()
        end = await target._call(_MIDDLE)
        await self._drag(start, {"x": end["x"] + x, "y": end["y"] + y})

    async def drag_by(self, x: float, y: float) -> None:
        """Press the mouse in its middle, and release it so many px from there."""
        start = await self._place()
        await self._drag(start, {"x": start["x"] + x, "y": start["y"] + y})

    async def _drag(self, start: Any, end: Any) -> None:
        middle = {name: (start[name] + end[name]) / 2 for name in ("x", "y")}
        press: dict[str, Any] = {"button": "left", "clickCount": 1, "x": start["x"], "y": start["y"]}
        await self._page.command("Input.dispatchMouseEvent", type="mousePressed", **press)
        for point in (middle, end):
            await self._page.command(
                "Input.dispatchMouseEvent", type="mouseMoved", buttons=1, x=point["x"], y=point["y"]
            )
        await self._page.command("Input.dispatchMouseEvent", type="mouseReleased", **{**press, **end})

    async def fill(self, text: str) -> None:
        """Click a field and replace its text; again if it lost the focus, or was made anew, meanwhile."""

        async def replace() -> bool:
            await self.click()
            found = await self._find()
            if found is None or not await self._page.function(found, _SELECT):
                return False
            if text:
                await self._page.command("Input.insertText", text=text)
            else:
                await self._page.press("Delete")
            return bool(await self._page.function(found, "function () { return this.isConnected; }"))

        await self._page.soon(replace, str(self))

    async def choose(self, label: str) -> None:
        """Choose an option of a `select` by its text. The list that a click opens is not a part of the page."""
        script = """function (label) {
            const option = [...this.options].find((each) => each.label.trim() === label);
            if (!option) return null;
            this.value = option.value;
            for (const type of ["input", "change"]) this.dispatchEvent(new Event(type, { bubbles: true }));
            return true;
        }"""
        await self._call(script, label)

    async def upload(self, *files: Path) -> None:
        """Choose files for a field of files."""

        async def give() -> bool:
            found = await self._find()
            if found is None:
                return False
            names = [str(file) for file in files]
            await self._page.command("DOM.setFileInputFiles", objectId=found, files=names)
            return True

        await self._page.soon(give, str(self))

    async def text(self) -> str:
        """Its text, as it is shown."""
        return str(await self._call(_TEXT, of="text"))

    async def value(self) -> str:
        """The value of a field."""
        return str(await self._call("function () { return { value: this.value }; }", of="value"))

    async def attribute(self, name: str) -> str | None:
        """An attribute; None if it has none of this name."""
        script = "function (name) { return { value: this.getAttribute(name) }; }"
        found: str | None = await self._call(script, name, of="value")
        return found

    async def shown(self) -> Target:
        """Wait until it is in the page; returns itself."""
        await self._call("function () { return true; }")
        return self

    async def gone(self) -> None:
        """Wait until it is no longer in the page."""

        async def absent() -> bool:
            return await self._find() is None

        await self._page.soon(absent, f"the end of {self}")

    async def count(self) -> int:
        """How many elements there are now."""
        return len(await self._all())

    async def counts(self, number: int) -> None:
        """Wait until there are so many elements."""

        async def look() -> bool:
            return await self.count() == number

        await self._page.soon(look, f"{number} times {self}")

    async def holds(self, value: str) -> None:
        """Wait until it is a field with this value."""

        async def look() -> bool:
            found = await self._find()
            return found is not None and bool(
                await self._page.function(found, "function () { return this.value; }") == value
            )

        await self._page.soon(look, f"{value!r} in {self}")

    async def says(self, text: str) -> None:
        """Wait until it shows this text."""

        async def look() -> bool:
            found = await self._find()
            shown = found and await self._page.function(
                found, "function () { return this.innerText ?? this.textContent; }"
            )
            return text in " ".join((shown or "").split())

        await self._page.soon(look, f"{text!r} in {self}")

    async def _place(self) -> Any:
        return await self._call(_PLACE)

    async def _call(self, script: str, *arguments: Any, of: str = "") -> Any:
        """The value of a function of the element, as soon as it is one."""

        async def look() -> Any:
            found = await self._find()
            return None if found is None else await self._page.function(found, script, *arguments)

        answer = await self._page.soon(look, str(self))
        return answer[of] if of else answer

    async def _find(self) -> str | None:
        found = await self._all()
        return found[self._nth] if len(found) > self._nth else None

    async def _all(self) -> list[str]:
        """The handles of all elements that are meant."""
        page = self._page
        root = await self._within._find() if self._within else await page.handle("document")
        if root is None:
            return []
        if self._css:
            script = "function (css) { return [...this.querySelectorAll(css)]; }"
            return await page.handles(root, script, self._css)
        nodes = (await page.command("Accessibility.queryAXTree", objectId=root, role=self._role))["nodes"]
        found = []
        for node in nodes:
            if not node["ignored"] and self._is_called(
                " ".join(node.get("name", {}).get("value", "").split())
            ):
                resolved = await page.command(
                    "DOM.resolveNode", backendNodeId=node["backendDOMNodeId"], objectGroup=GROUP
                )
                found.append(resolved["object"]["objectId"])
        return found

    def _is_called(self, name: str) -> bool:
        if isinstance(self._name, re.Pattern):
            return self._name.search(name) is not None
        return self._name is None or self._name == name
