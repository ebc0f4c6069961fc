"""The pages that need no token: alive, ready, metrics, and the API's documentation, from installed files only."""

from __future__ import annotations

import json
import math
import re
import time
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest
import trio
from openapi_spec_validator import OpenAPIV31SpecValidator, validate
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.conftest import NOT_BY_DOORS, PARTITIONS, PASSWORD, Server, running_server
from trunkline.http.routes import TABLE
from trunkline.http.site import site
from trunkline.http.version import VERSION

REFERENCES = ("src", "href", "action", "data", "poster", "srcset")
OUTSIDE = re.compile(r"(?:https?:)?//", re.IGNORECASE)
KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml", "json": "application/json"}
CSS_REFERENCE = re.compile(r"url\(\s*['\"]?([^'\")]*)|@import\s+['\"]?([^'\";]*)", re.IGNORECASE)


class References(HTMLParser):
    """What a page makes a browser fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.inline = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.found += [given[name] or "" for name in REFERENCES if name in given]
        self.inline += tag in ("script", "style") and "src" not in given
        self.inline += any(name.startswith("on") for name in given)


async def page(server: Server, path: str, status: int = 200) -> httpx.Response:
    """A page as somebody without a token gets it."""
    async with server.client("") as client:
        response = await client.get(path)
    assert response.status_code == status, (path, response.status_code, response.text)
    return response


async def metrics(server: Server) -> dict[str, Metric]:
    """All metrics by name."""
    response = await page(server, "/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=")
    return {family.name: family for family in text_string_to_metric_families(response.text)}


def value(families: dict[str, Metric], name: str, **labels: str) -> float:
    """The value of one sample; 0 where there is none yet. Of several processes the sum, or the largest of a gauge."""
    found, is_gauge = [0.0], False
    for family in families.values():
        for sample in family.samples:
            of = {label: text for label, text in sample.labels.items() if label != "process"}
            if sample.name == name and of == labels:
                found.append(sample.value)
                is_gauge = family.type == "gauge"
    return max(found) if is_gauge else sum(found)


async def test_alive_and_ready(server: Server) -> None:
    assert (await page(server, "/healthz")).json() == {"status": "alive"}
    assert (await page(server, "/readyz")).json() == {"status": "ready"}


async def test_what_is_no_page_is_refused_in_the_one_shape(server: Server) -> None:
    for path, method, status in (
        ("/no/such", "GET", 404),
        ("/healthz", "POST", 405),
        ("/docs", "DELETE", 405),
    ):
        async with server.client("") as client:
            response = await client.request(method, path)
        assert response.status_code == status, (path, response.text)
        assert set(response.json()) == {"type", "message"}


@NOT_BY_DOORS
async def test_the_metrics_count_what_happened(server: Server) -> None:
    before = await metrics(server)
    device = await server.device(await server.application())
    for number in range(3):
        await server.call("POST", f"{device}/state", {"data": {"temp": number}})
    await server.call("POST", f"{device}/state", {"data": {"nothing": 1}}, status=400)
    after = await metrics(server)

    def counted(name: str, **labels: str) -> float:
        return value(after, name, **labels) - value(before, name, **labels)

    assert counted("trunkline_calls_total", operation="device.sendState", status="200") == 3
    assert counted("trunkline_calls_total", operation="device.sendState", status="400") == 1
    assert counted("trunkline_calls_total", operation="devices.post", status="201") == 1
    assert counted("trunkline_messages_refused_total") == 1
    # The application and the device also have an entry in the audit log.
    assert counted("trunkline_commits_total") == 7
    assert counted("trunkline_batches_total") == 7
    assert counted("trunkline_bytes_written_total") > 0
    assert counted("trunkline_group_size_count") == 7
    ours = server.settings.engine == "fast"  # the stock connections are not counted
    assert counted("trunkline_connections_accepted_total") == (7 if ours else 0)
    of_owners = PARTITIONS * (PARTITIONS - 1)  # each has a channel to each other one
    assert value(after, "trunkline_connections_open") in (range(1, 2 + of_owners) if ours else (0,))
    assert counted("trunkline_heads_found_total") == counted("trunkline_heads_known") == 0  # each came alone
    assert value(after, "trunkline_actors_active") >= 2
    assert value(after, "trunkline_store_used_bytes") > 0


async def test_the_metrics_count_the_times_of_calls_and_commits(server: Server) -> None:
    before = await metrics(server)
    device = await server.device(await server.application())
    for number in range(3):
        await server.call("POST", f"{device}/state", {"data": {"temp": number}})
    await server.call("GET", f"{device}/state")
    await server.call("POST", f"{device}/command", {"name": "beep"})
    await server.call("GET", "/no/such", status=404)
    await server.log_in()
    after = await metrics(server)

    def counted(name: str, **labels: str) -> float:
        return value(after, name, **labels) - value(before, name, **labels)

    expected = {"state": 3, "read": 1, "command": 1, "write": 2, "none": 1, "public": 1, "stream": 0}
    for name, calls in expected.items():
        assert counted("trunkline_call_duration_seconds_count", **{"class": name}) == calls, name
        assert counted("trunkline_call_duration_seconds_bucket", **{"class": name, "le": "+Inf"}) == calls
        assert (counted("trunkline_call_duration_seconds_sum", **{"class": name}) > 0) is (calls > 0)
    commits = counted("trunkline_commits_total")
    assert counted("trunkline_commit_duration_seconds_count") == commits > 0
    assert counted("trunkline_commit_duration_seconds_sum") > 0


async def test_the_buckets_of_histograms_contain_those_before_them(server: Server) -> None:
    await server.application()
    families = await metrics(server)
    for name in (
        "trunkline_call_duration_seconds",
        "trunkline_commit_duration_seconds",
        "trunkline_group_size",
    ):
        buckets: dict[str, list[tuple[float, float]]] = {}
        for sample in families[name].samples:
            if sample.name.endswith("_bucket"):
                of = sample.labels.get("class", "") + sample.labels.get("process", "")
                buckets.setdefault(of, []).append((float(sample.labels["le"]), sample.value))
        assert buckets, name
        for found in buckets.values():
            assert found == sorted(found), "both grow"
            assert found[-1][0] == math.inf


async def test_the_metrics_describe_the_process_and_the_disk(server: Server) -> None:
    families = await metrics(server)
    assert value(families, "process_resident_memory_bytes") > 10_000_000
    assert 0 < value(families, "process_open_fds") < value(families, "process_max_fds")
    assert 0 < value(families, "process_start_time_seconds") <= time.time() + 1
    assert value(families, "process_cpu_seconds_total") > 0
    assert 0 < value(families, "trunkline_disk_free_bytes") < value(families, "trunkline_disk_size_bytes")
    build, *_ = families["trunkline_build_info"].samples
    assert (build.labels["version"], build.value) == (VERSION, 1)


async def test_the_metrics_know_the_quota(tmp_path: Path) -> None:
    async with running_server(tmp_path / "with", store_size_max_bytes=2**30) as server:
        assert value(await metrics(server), "trunkline_store_quota_bytes") == 2**30
    async with running_server(tmp_path / "without") as server:
        assert value(await metrics(server), "trunkline_store_quota_bytes") == math.inf


@NOT_BY_DOORS
async def test_the_metrics_count_heads_that_come_again(server: Server) -> None:
    """Only what the fast path took is looked up, so this also shows that the product has one."""
    device = await server.device(await server.application())
    await server.call("POST", f"{device}/state", {"data": {"temp": 1}})
    async with server.client() as client:
        for _ in range(5):
            assert (await client.get(f"{device}/state")).status_code == 200
    after = await metrics(server)
    ours = server.settings.engine == "fast"
    assert value(after, "trunkline_heads_known") == (1 if ours else 0)
    assert (value(after, "trunkline_heads_found_total") > 0) == ours


async def test_the_metrics_name_nobody(server: Server) -> None:
    """No id, no token, no path: labels of a small and known number of values."""
    device = await server.device(await server.application("a secret name"))
    text = (await page(server, "/metrics")).text
    for told in (server.token, PASSWORD, "a secret name", device.rpartition("/")[2]):
        assert told not in text
    operations = {"none", *TABLE.operations}
    labels = {
        label: sample.labels[label]
        for family in (await metrics(server)).values()
        for sample in family.samples
        for label in sample.labels
    }
    known = {"operation", "status", "class", "kind", "le", "version", "python_version"}
    assert set(labels) <= known | ({"process", "to"} if PARTITIONS > 1 else set())
    for family in (await metrics(server)).values():
        assert all(sample.labels.get("operation", "none") in operations for sample in family.samples)


async def test_the_served_document_is_valid(server: Server) -> None:
    document = (await page(server, "/openapi.json")).json()
    validate(document, cls=OpenAPIV31SpecValidator)
    assert sum(len(path) for path in document["paths"].values()) == len(TABLE.routes)


@pytest.mark.parametrize("path", ["/", "/docs"])
async def test_a_page_fetches_nothing_from_elsewhere(server: Server, path: str) -> None:
    """What the page names is served by us, and its policy forbids the browser to ask anybody else."""
    answer = await page(server, path)
    assert answer.headers["content-type"].startswith("text/html")
    policy = dict(
        directive.split(" ", 1) for directive in answer.headers["content-security-policy"].split("; ")
    )
    assert policy["default-src"] == "'none'"
    for directive, sources in policy.items():
        assert set(sources.split()) <= {"'none'", "'self'", "'unsafe-inline'", "data:"}, directive
    assert policy["script-src"] == "'self'"
    assert policy["connect-src"] == "'self'"
    references = References()
    references.feed(answer.text)
    assert references.inline == 0, "the policy lets no inline script run"
    assert len(references.found) >= 3
    for reference in references.found:
        assert reference.startswith("/")
        assert not OUTSIDE.match(reference)
        part = await page(server, reference)
        kind = KINDS.get(reference.rpartition(".")[2], "")
        assert part.headers["content-type"].startswith(kind)
        if kind == "text/css":
            for found in CSS_REFERENCE.findall(part.text):
                target = "".join(found)
                assert target.startswith(("data:", "#")), target


async def test_the_script_of_the_documentation_names_this_server_only(server: Server) -> None:
    start = (await page(server, "/docs/start.js")).text
    code = re.sub(r"^//.*$", "", start, flags=re.MULTILINE)
    assert set(re.findall(r'"(/[^"]+)"', code)) == {"/openapi.json", "/auth/user"}
    assert not OUTSIDE.search(code)


async def test_the_first_page_leads_on(server: Server) -> None:
    """To everything that a browser can open without a token."""
    references = References()
    references.feed((await page(server, "/")).text)
    assert {"/docs", "/openapi.json", "/healthz", "/readyz", "/metrics"} <= set(references.found)
    async with server.client("") as client:
        assert (await client.head("/")).status_code == 200
        assert (await client.post("/")).status_code == 405
        icon = await client.get("/favicon.ico")
    assert icon.headers["content-type"] == "image/svg+xml"
    assert icon.content == (await page(server, "/favicon.svg")).content


async def test_the_documentation_names_no_server_but_this_one(server: Server) -> None:
    """A browser on another address must not be sent to this one by name."""
    document = json.loads((await page(server, "/openapi.json")).text)
    assert [each["url"] for each in document["servers"]] == ["/"]


async def test_the_document_is_made_once_for_calls_at_the_same_time(server: Server) -> None:
    site._encoded_document.cache_clear()
    answers: list[bytes] = []

    async def fetch() -> None:
        answers.append((await page(server, "/openapi.json")).content)

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(fetch)
    assert len(answers) == 5
    assert len(set(answers)) == 1
    assert site._encoded_document.cache_info().misses == 1
