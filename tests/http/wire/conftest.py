"""Fixtures of the tests of connections: the same tests in cleartext and over TLS."""

from __future__ import annotations

import pytest
import trustme

from tests.http import raw_wire
from tests.http.tls_client import Secured, trusting, write_certificate


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out the stock engine over TLS: how that ends a connection is Hypercorn's business."""
    items[:] = [item for item in items if not {"tls", "stock"} <= set(parameters(item))]


def parameters(item: pytest.Item) -> list[object]:
    """The hashable values with which a test is parametrized."""
    given = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return [value for value in given if isinstance(value, str)]


@pytest.fixture(scope="session")
def secured_server(tmp_path_factory: pytest.TempPathFactory) -> Secured:
    """A certificate for the servers of these tests."""
    authority = trustme.CA()
    return Secured(write_certificate(authority, tmp_path_factory.mktemp("tls")), trusting(authority))


@pytest.fixture(params=["cleartext", "tls"])
def both_transports(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a test twice: the servers that it starts, and its raw connections, are in cleartext, then over TLS."""
    if request.param == "tls":
        monkeypatch.setattr(raw_wire, "over_tls", request.getfixturevalue("secured_server"))
    return str(request.param)
