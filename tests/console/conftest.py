"""Pages of the console in a real browser, on real servers. Without a Chromium these tests are skipped, loudly."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.console.console_page import ConsolePage, console_page, login_of
from tests.console.demo_server import DemoServer, demo_server
from tests.e2e.browser import CHROMIUM, shared
from tests.e2e.conftest import Server, running_server


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The browser of all pages; a test that needs it is skipped without it."""
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on this machine")
    with shared(tmp_path_factory.mktemp("chromium")):
        yield


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    """A server without any application."""
    async with running_server(tmp_path / "data") as running:
        yield running


@pytest.fixture
async def page(chromium: None, server: Server, tmp_path: Path) -> AsyncIterator[ConsolePage]:
    """The console of `server`; nobody is logged in."""
    async with console_page(server.url, tmp_path) as shown:
        yield shown


@pytest.fixture
async def console(chromium: None, server: Server, tmp_path: Path) -> AsyncIterator[ConsolePage]:
    """The console of `server`, with the owner logged in."""
    async with console_page(server.url, tmp_path, login=await login_of(server)) as shown:
        yield shown


@pytest.fixture
async def demo(tmp_path: Path) -> AsyncIterator[DemoServer]:
    """A server with the demo: its records, and devices that report."""
    async with demo_server(tmp_path / "demo") as running:
        yield running


@pytest.fixture
async def demo_console(chromium: None, demo: DemoServer, tmp_path: Path) -> AsyncIterator[ConsolePage]:
    """The console of `demo`, with the owner logged in."""
    async with console_page(demo.server.url, tmp_path, login=await login_of(demo.server)) as shown:
        yield shown
