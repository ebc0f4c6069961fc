"""A Chromium without a window, driven over its debugging protocol: a page, and JavaScript run in it.

A page remembers its faults: exceptions that nothing caught and, where it is `watched`, errors in the console of the
browser, violations of the content security policy and requests that leave the origin. The next command, or the end of
the page, fails with them.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

import trio
from trio_websocket import ConnectionClosed, WebSocketConnection, open_websocket_url

from tests.patience import PAGE_S, PATIENCE_S

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
"""None where there is none."""

_QUIET = ("quic", "gpu", "background-networking", "component-update", "sync", "extensions", "default-apps")
_LEFT_OUT: Final = (
    # Nobody sees the frame of a window. For its address bar alone it would load two pages in each profile.
    "PreloadTopChromeWebUI",
    "WebUIOmniboxPopup",
    "WebUIOmniboxAimPopup",
    "WebUIOmniboxFullPopup",
    # A process for the next page, started ahead after each one.
    "SpareRendererForSitePerProcess",
)
_MESSAGE_BYTES_MAX = 1 << 26
_ANYWHERE: Final = ("data:", "blob:", "about:")
"""Requests of these kinds leave no page."""
FAULT_S: Final = 60
"""Seconds that a fault is waited for."""
_REPORTER: Final = "policyViolated"
_REPORT: Final = f"""document.addEventListener("securitypolicyviolation", (event) =>
    {_REPORTER}(`${{event.violatedDirective}} forbids ${{event.blockedURI}} ${{event.sample}}`));"""


class ProtocolError(Exception):
    """The browser refused a command, for example because an element is no longer in the page."""


class Page:
    """A page that is shown."""

    def __init__(self, connection: WebSocketConnection) -> None:
        self.faults: list[str] = []
        self.requests: list[str] = []
        """The method and the URL of all requests of a page that is watched."""
        self.profile = ""
        self._connection = connection
        self._session: str | None = None
        self._calls = 0
        self._answers: dict[int, Any] = {}
        self._listeners: dict[str, list[Callable[[Any], object]]] = {}
        self._changed = trio.Event()
        self._closed = False
        self._expected: list[str] = []

    async def run(self, script: str) -> Any:
        """The value of an expression, or of the promise that it is. An exception of the page fails the test."""
        given: dict[str, Any] = {"expression": script, "awaitPromise": True, "returnByValue": True}
        answer = await self.command("Runtime.evaluate", **given)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def until(self, expression: str) -> Any:
        """The value of an expression as soon as it is true."""
        look = f"const value = ({expression}); value ? found(value) : setTimeout(look, 20)"
        return await self.run(f"new Promise((found) => {{ const look = () => {{ {look} }}; look(); }})")

    async def command(self, method: str, *, ends_with: str = "", **parameters: Any) -> Any:
        """A command of the protocol and its answer; with `ends_with`, when this event has come as well."""
        ended = not ends_with

        def end(_event: Any) -> None:
            nonlocal ended
            ended = True

        if ends_with:
            self.on(ends_with, end)
        self._calls += 1
        id = self._calls
        call = {"id": id, "method": method, "params": parameters}
        if self._session is not None:
            call["sessionId"] = self._session
        await self._connection.send_message(json.dumps(call))
        with trio.fail_after(PATIENCE_S):
            while id not in self._answers or not ended:
                assert not self._closed, f"the browser ended during {method}"
                self._check()  # a page with a fault may never come to what is awaited
                await self._changed.wait()
        if ends_with:
            self._listeners[ends_with].remove(end)
        answer = self._answers.pop(id)
        self._check()
        if "result" not in answer:
            raise ProtocolError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def on(self, event: str, listener: Callable[[Any], object]) -> None:
        """Call `listener` with the parameters of each event of this name."""
        self._listeners.setdefault(event, []).append(listener)

    @asynccontextmanager
    async def expecting(self, *patterns: str) -> AsyncIterator[None]:
        """Within it, faults that match are part of the test, such as the 401 of a wrong password. All must come.

        The browser tells of them after the page may have shown what it made of them, so its end waits for them.
        """
        self._expected += patterns
        yield
        with trio.move_on_after(FAULT_S):
            while self._missing(patterns) and not self._closed:
                await self._changed.wait()
        assert not self._missing(patterns), f"no fault matches {self._missing(patterns)}"
        await self.run("new Promise((done) => setTimeout(done, 0))")
        self.faults = [fault for fault in self.faults if not any(re.search(each, fault) for each in patterns)]
        for pattern in patterns:
            self._expected.remove(pattern)

    async def watched(self, origin: str) -> None:
        """From now on also errors in the console, violations of the policy and requests to others are faults."""

        def asked(event: Any) -> None:
            url = event["request"]["url"]
            self.requests.append(f"{event['request']['method']} {url}")
            if not url.startswith((f"{origin}/", *_ANYWHERE)):
                self.faults.append(f"a request leaves the origin: {url}")

        def logged(event: Any) -> None:
            entry = event["entry"]
            if entry["level"] == "error":
                self.faults.append(f"{entry['source']}: {entry['text']} {entry.get('url', '')}")

        def printed(event: Any) -> None:
            if event["type"] in ("error", "assert", "warning"):
                texts = [str(each.get("value", each.get("description"))) for each in event["args"]]
                self.faults.append(f"console.{event['type']}: {' '.join(texts)}")

        def violated(event: Any) -> None:
            if event["name"] == _REPORTER:
                self.faults.append(f"the content security policy: {event['payload']}")

        self.on("Network.requestWillBeSent", asked)
        self.on("Log.entryAdded", logged)
        self.on("Runtime.consoleAPICalled", printed)
        self.on("Runtime.bindingCalled", violated)
        for domain in ("Network", "Log"):
            await self.command(f"{domain}.enable")
        await self.command("Runtime.addBinding", name=_REPORTER)
        await self.command("Page.addScriptToEvaluateOnNewDocument", source=_REPORT)

    async def attach(self, profile: str = "") -> None:
        """Open a tab; all further commands are for it. It has a profile of its own, unless another page's is given.

        Both end with the connection.
        """
        if not profile:
            made = await self.command("Target.createBrowserContext", disposeOnDetach=True)
            profile = made["browserContextId"]
        self.profile = profile
        tab = await self.command("Target.createTarget", url="about:blank", browserContextId=self.profile)
        session = await self.command("Target.attachToTarget", targetId=tab["targetId"], flatten=True)
        self._session = session["sessionId"]
        self.on("Runtime.exceptionThrown", self._thrown)
        await self.command("Page.enable")
        await self.command("Runtime.enable")
        # Of several pages of a browser only one has the focus otherwise.
        await self.command("Emulation.setFocusEmulationEnabled", enabled=True)

    async def receive(self) -> None:
        """Take what the browser sends, until it ends."""
        try:
            while True:
                message = json.loads(await self._connection.get_message())
                if "id" in message:
                    self._answers[message["id"]] = message
                for listener in [*self._listeners.get(message.get("method", ""), ())]:
                    listener(message["params"])
                self._wake()
        except ConnectionClosed:
            self._closed = True
            self._wake()

    def _missing(self, patterns: tuple[str, ...]) -> list[str]:
        return [each for each in patterns if not any(re.search(each, fault) for fault in self.faults)]

    def _wake(self) -> None:
        changed, self._changed = self._changed, trio.Event()
        changed.set()

    def _thrown(self, event: Any) -> None:
        details = event["exceptionDetails"]
        self.faults.append(details.get("exception", {}).get("description", details["text"]))

    def _check(self) -> None:
        faults = [
            fault for fault in self.faults if not any(re.search(each, fault) for each in self._expected)
        ]
        assert not faults, "\n".join(faults)


class Browser:
    """A Chromium without a window, in which each page has a profile of its own."""

    def __init__(self, profile: Path) -> None:
        assert CHROMIUM is not None
        options = ["--headless", "--no-sandbox", "--no-first-run", *(f"--disable-{name}" for name in _QUIET)]
        options.append(f"--disable-features={','.join(_LEFT_OUT)}")
        options += [f"--user-data-dir={profile}", "--remote-debugging-port=0", "about:blank"]
        self._process = subprocess.Popen(
            [CHROMIUM, *options], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        self.address = self._address()
        # What it says of itself is taken, so that its pipe is never full.
        self._drain = threading.Thread(target=self._said, daemon=True)
        self._drain.start()

    def ended(self) -> bool:
        """Whether it has ended by itself."""
        return self._process.poll() is not None

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        self._drain.join()
        assert self._process.stderr is not None
        self._process.stderr.close()

    def _address(self) -> str:
        assert self._process.stderr is not None
        said = b""
        for line in self._process.stderr:
            said += line
            if found := re.search(rb"DevTools listening on (ws://\S+)\n", line):
                return found[1].decode()
        raise AssertionError(f"the browser ended: {said.decode()}")

    def _said(self) -> None:
        assert self._process.stderr is not None
        for _line in self._process.stderr:
            pass


_shared: list[Browser] = []


@contextmanager
def shared(profile: Path) -> Iterator[None]:
    """Within it all pages are opened in one browser: to start one takes longer than most tests."""
    _shared.append(Browser(profile))
    yield
    _shared.pop().close()


@asynccontextmanager
async def _browser(profile: Path) -> AsyncIterator[Browser]:
    """The shared browser, anew if it has ended, or one of its own."""
    if _shared:
        if _shared[0].ended():
            _shared[0].close()
            _shared[0] = await trio.to_thread.run_sync(Browser, profile)
        yield _shared[0]
        return
    own = await trio.to_thread.run_sync(Browser, profile)
    try:
        yield own
    finally:
        own.close()


@asynccontextmanager
async def shown(url: str, profile: Path, *, patience_s: float = PAGE_S) -> AsyncIterator[Page]:
    """A page, loaded. All waiting in it is bounded."""
    async with opened(profile, patience_s=patience_s) as page:
        await page.command("Page.navigate", ends_with="Page.loadEventFired", url=url)
        yield page


@asynccontextmanager
async def opened(
    profile: Path, kind: type[Any] = Page, *, beside: Page | None = None, patience_s: float = PAGE_S
) -> AsyncIterator[Any]:
    """An empty page of this kind with a new profile, which is in this directory if the browser is not shared.

    Or one `beside` another in the shared browser, with its profile.
    """
    with trio.fail_after(patience_s):
        async with (
            _browser(profile) as browser,
            open_websocket_url(browser.address, max_message_size=_MESSAGE_BYTES_MAX) as connection,
            trio.open_nursery() as nursery,
        ):
            page = kind(connection)
            nursery.start_soon(page.receive)
            await page.attach("" if beside is None else beside.profile)
            yield page
            # Faults of the last moment fail as well.
            await page.run("new Promise((done) => setTimeout(done, 0))")
            nursery.cancel_scope.cancel()
