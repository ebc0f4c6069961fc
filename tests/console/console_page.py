"""A page of the console, used as a person uses it: by mouse, by keyboard, and by what elements are called."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import trio
from trio_websocket import WebSocketConnection

from tests.console.element_page import STEP_S, ElementPage
from tests.console.target import Name, Target
from tests.e2e.browser import opened
from tests.e2e.conftest import EMAIL, PASSWORD, Server
from trunkline.http.resources.people.browser_login import PATH


class Login(NamedTuple):
    """A login that a browser remembers: its cookie (name and value), and what the console notes of it."""

    cookie: tuple[str, str]
    note: str


async def login_of(server: Server, email: str = EMAIL, password: str = PASSWORD) -> Login:
    """A new login of a user, by default of the owner, as a browser remembers it."""
    async with server.client(await server.log_in(email, password)) as client:
        answer = await client.post("/me/session")
        me = (await client.get("/me")).json()
    name, _, value = answer.headers["set-cookie"].partition(";")[0].partition("=")
    return Login((name, value), json.dumps({"userId": me["id"], "email": email, "until": 4e12}))


class ConsolePage(ElementPage):
    """A page of the console. It is watched: errors, violations of the policy and requests to others fail the test."""

    origin = ""
    downloads: Path

    def __init__(self, connection: WebSocketConnection) -> None:
        super().__init__(connection)
        self._open: dict[str, str] = {}
        self._asked = 0
        self._loader = ""
        self._left: set[str] = set()

    async def watched(self, origin: str) -> None:
        """See `Page`; the requests that are not answered are counted as well."""

        def asked(event: Any) -> None:
            self._asked += 1
            if event.get("type") == "Document":
                self._open.clear()
                self._left.add(self._loader)
                self._loader = event["loaderId"]
            # Nothing tells how the requests end that a page leaves behind. Some are told after its successor's first.
            if event["loaderId"] not in self._left:
                self._open[event["requestId"]] = event["request"]["url"]

        def answered(event: Any) -> None:
            if event.get("response", {}).get("mimeType") in (None, "text/event-stream"):
                self._open.pop(event["requestId"], None)

        self.on("Network.requestWillBeSent", asked)
        for name in ("responseReceived", "loadingFinished", "loadingFailed"):
            self.on(f"Network.{name}", answered)
        await super().watched(origin)

    def at(self, role: str = "", name: Name = None, *, css: str = "", nth: int = 0) -> Target:
        """An element by its role and accessible name (a text, or a pattern to search), or by a CSS selector."""
        return Target(self, None, role, name, css, nth)

    async def go(self, place: str) -> None:
        """Go to a place of the console, such as `#/applications`, by the address. Where it is already it loads anew."""
        script = f"location.hash === {json.dumps(place)} || (location.hash = {json.dumps(place)}, false)"
        if await self.run(script):
            await self.reload()

    async def place(self) -> str:
        """Where it is: the part of the address after `/console`."""
        return str(await self.run("location.hash"))

    async def comes_to(self, place: str | re.Pattern[str]) -> None:
        """Wait until it is at a place: the whole of it, or a pattern to search."""

        async def look() -> bool:
            now = await self.place()
            return now == place if isinstance(place, str) else place.search(now) is not None

        await self.soon(look, f"the place {place!r}")

    async def gives(self, script: str, wanted: Any, what: str = "") -> None:
        """Wait until an expression has this value."""

        async def look() -> bool:
            return bool(await self.run(script) == wanted)

        await self.soon(look, f"{what or script}: {wanted!r}")

    async def settled(self) -> None:
        """Wait until it asks for nothing, except what streams, and has drawn what came."""
        script = """new Promise((done) => {
            let left = 6;
            const next = () => (left-- ? requestAnimationFrame(next) : done());
            next();
        })"""
        with trio.move_on_after(STEP_S):
            while True:
                before = self._asked
                await self.run(script)
                if not self._open and before == self._asked:
                    return
        raise AssertionError(f"{await self.place()} still asks for {sorted(self._open.values())}")

    async def reload(self) -> None:
        """Load the page anew."""
        await self.command("Page.reload", ends_with="Page.loadEventFired")

    async def log_in(self, email: str, password: str) -> None:
        """Log in with the form."""
        await self.at(css='input[autocomplete="username"]').fill(email)
        await self.at(css='input[type="password"]').fill(password)
        await self.press("Enter")
        await self.at(css='input[type="password"]').gone()

    async def sees(self, text: str) -> None:
        """Wait until the page shows this text. Line breaks count as blanks."""
        await self.at(css="body").says(text)

    async def shows(self) -> str:
        """All text that it shows."""
        return str(await self.run("document.body.innerText"))

    @asynccontextmanager
    async def second_tab(self) -> AsyncIterator[ConsolePage]:
        """Another tab of the same browser, at the start of the console."""
        async with opened(self.downloads, ConsolePage, beside=self) as tab:
            await tab.begin(self.origin, self.downloads)
            yield tab

    async def begin(
        self, url: str, downloads: Path, place: str = "", before: str = "", login: Login | None = None
    ) -> None:
        """Load the console at this URL; see `console_page`."""
        self.origin, self.downloads = url, downloads
        await self.watched(url)
        await self.command("Accessibility.enable")
        await self.zone("Europe/Berlin")
        await self.viewport(1280, 800)
        if login is not None:
            name, value = login.cookie
            cookie = {"name": name, "value": value, "url": f"{url}{PATH}", "path": PATH}
            await self.command("Network.setCookie", **cookie, httpOnly=True, sameSite="Strict")
            # Once: a page that is loaded again after a logout is not logged in.
            before += f"""if (!sessionStorage.getItem("begun")) {{
                sessionStorage.setItem("begun", "1");
                localStorage.setItem("trunkline.login", {json.dumps(login.note)});
            }}"""
        if before:
            await self.command("Page.addScriptToEvaluateOnNewDocument", source=before)
        await self.command("Page.navigate", ends_with="Page.loadEventFired", url=f"{url}/console{place}")

    async def viewport(self, width: int, height: int, *, mobile: bool = False) -> None:
        """Make the window of this size, in CSS pixels."""
        size: dict[str, Any] = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
        await self.command("Emulation.setDeviceMetricsOverride", **size)

    async def scheme(self, name: str) -> None:
        """Prefer `light` or `dark`, and no motion."""
        features = {"prefers-color-scheme": name, "prefers-reduced-motion": "reduce"}
        wanted = [{"name": feature, "value": value} for feature, value in features.items()]
        await self.command("Emulation.setEmulatedMedia", features=wanted)

    async def zone(self, name: str) -> None:
        """Show local times of this time zone, in English."""
        await self.command("Emulation.setTimezoneOverride", timezoneId=name)
        await self.command("Emulation.setLocaleOverride", locale="en-GB")

    async def picture(self, file: Path, *, quality: int = 60) -> None:
        """Write a picture of the window, as WebP."""
        answer = await self.command("Page.captureScreenshot", format="webp", quality=quality)
        await trio.Path(file).parent.mkdir(parents=True, exist_ok=True)
        await trio.Path(file).write_bytes(base64.b64decode(answer["data"]))

    async def heap_bytes(self) -> int:
        """What its JavaScript holds, after the collection of garbage."""
        await self.command("HeapProfiler.collectGarbage")
        return int((await self.command("Runtime.getHeapUsage"))["usedSize"])

    async def frames_per_second(self, seconds: float) -> float:
        """The frames that it draws a second, counted for so long."""
        script = f"""new Promise((done) => {{
            const start = performance.now();
            let frames = 0;
            const count = () => {{
                const passed = performance.now() - start;
                if (passed >= {seconds * 1000}) return done(frames * 1000 / passed);
                frames += 1;
                requestAnimationFrame(count);
            }};
            requestAnimationFrame(count);
        }})"""
        return float(await self.run(script))

    @asynccontextmanager
    async def held(
        self, pattern: str, *, answered: bool = False
    ) -> AsyncIterator[Callable[[], Awaitable[object]]]:
        """Within it, requests to such URLs wait; `async with page.held("*/runs") as asked: click; await asked()`.

        If `answered`, the server gets them, and its answers wait.
        """
        paused: list[str] = []
        self.on("Fetch.requestPaused", lambda event: paused.append(event["requestId"]))
        stage = "Response" if answered else "Request"
        given: dict[str, Any] = {"patterns": [{"urlPattern": pattern, "requestStage": stage}]}
        await self.command("Fetch.enable", **given)

        async def look() -> bool:
            return bool(paused)

        yield lambda: self.soon(look, f"a request to {pattern}")
        await self.command("Fetch.disable")  # they go on

    @asynccontextmanager
    async def hidden(self) -> AsyncIterator[None]:
        """Within it the tab is hidden for the page: its streams are closed, and repeated loads wait."""
        script = """{
            Object.defineProperty(document, "hidden", { value: %s, configurable: true });
            document.dispatchEvent(new Event("visibilitychange"));
        }"""
        await self.run(script % "true")
        yield
        await self.run(script % "false")

    @asynccontextmanager
    async def download(self) -> AsyncIterator[Callable[[], Awaitable[Path]]]:
        """Within it a file is downloaded: `async with page.download() as file: click; path = await file()`."""
        found: dict[str, str] = {}

        def began(event: Any) -> None:
            found[event["guid"]] = event["suggestedFilename"]

        done: list[str] = []

        def progressed(event: Any) -> None:
            if event["state"] == "completed":
                done.append(event["guid"])

        self.on("Browser.downloadWillBegin", began)
        self.on("Browser.downloadProgress", progressed)
        where: dict[str, Any] = {
            "behavior": "allow",
            "browserContextId": self.profile,
            "downloadPath": str(self.downloads),
            "eventsEnabled": True,
        }
        await self.command("Browser.setDownloadBehavior", **where)

        async def file() -> Path:
            async def look() -> Path | None:
                return self.downloads / found[done[0]] if done else None

            path = await self.soon(look, "a download")
            assert path is not None
            return path

        yield file


@asynccontextmanager
async def console_page(
    url: str, folder: Path, *, place: str = "", before: str = "", login: Login | None = None, **options: Any
) -> AsyncIterator[ConsolePage]:
    """The console of a server at this URL, in a profile of its own; without `login` nobody is logged in.

    `before` is a script. The console begins with a login as in another tab; `log_in` uses the form.
    """
    async with opened(folder / "profile", ConsolePage, **options) as page:
        await page.begin(url, folder / "downloads", place, before, login)
        yield page
