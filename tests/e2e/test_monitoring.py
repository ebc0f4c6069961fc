"""The dashboard and the alert rules ask only for metrics and labels that a server has."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import trio
import trustme
import yaml
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.backups import back_up
from tests.e2e.conftest import PARTITIONS, Server, running_server
from trunkline.http.hosting.tls_files import TlsConfig
from trunkline.limits.settings import Settings

MONITORING = Path(__file__).resolve().parents[2] / "docs" / "monitoring"
METRIC = re.compile(r"\b(?:trunkline|process)_[a-z0-9_]+")
SELECTOR = re.compile(r'(\w+)(?:!?=|!?~|=~|!~)"([^"]*)"')
GROUPED = re.compile(r"\bby \(([^)]*)\)")
OF_PROMETHEUS = {"job"}
"""Labels that the scrape adds."""


def alerts() -> list[dict[str, Any]]:
    text = (MONITORING / "alerts.yml").read_text(encoding="utf-8")
    return [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((MONITORING / "dashboard.json").read_text())["panels"]
    return found


def expressions() -> Iterator[str]:
    """Every query of the two files."""
    yield from (rule["expr"] for rule in alerts())
    yield from (target["expr"] for panel in panels() for target in panel["targets"])


@pytest.fixture
async def families(server: Server) -> list[Metric]:
    """The metrics of a server that has handled some calls."""
    device = await server.device(await server.application())
    await server.call("POST", f"{device}/state", {"data": {"temp": 1}})
    async with server.client() as client:
        text = (await client.get("/metrics")).text
    return list(text_string_to_metric_families(text))


async def test_every_metric_that_is_asked_for_exists(families: list[Metric]) -> None:
    exported = {sample.name for family in families for sample in family.samples}
    asked = {name for each in expressions() for name in METRIC.findall(each)}
    assert len(asked) > 20
    machines = {"trunkline_machine_up", "trunkline_machine_behind_entries"}
    machines |= {"trunkline_log_up", "trunkline_log_server_current"}
    assert asked - exported == machines | (set() if PARTITIONS > 1 else {"trunkline_process_up"})


async def test_every_label_that_is_asked_for_exists(families: list[Metric]) -> None:
    labels: dict[str, set[str]] = {}
    for family in families:
        for sample in family.samples:
            for label, text in sample.labels.items():
                labels.setdefault(label, set()).add(text)
    for each in expressions():
        grouped = {label.strip() for labels_of in GROUPED.findall(each) for label in labels_of.split(",")}
        selected = {label for label, _ in SELECTOR.findall(each)}
        assert (grouped | selected) - OF_PROMETHEUS <= set(labels), each
        for label, text in SELECTOR.findall(each):
            if label == "class":
                assert text in labels["class"], each


async def test_the_labels_of_legends_exist(families: list[Metric]) -> None:
    labels = {label for family in families for sample in family.samples for label in sample.labels}
    legends = [target["legendFormat"] for panel in panels() for target in panel["targets"]]
    assert {label for legend in legends for label in re.findall(r"\{\{(\w+)\}\}", legend)} <= labels


def test_the_rules_have_the_form_that_prometheus_reads() -> None:
    names = [rule["alert"] for rule in alerts()]
    assert len(set(names)) == len(names) > 5
    for rule in alerts():
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}, rule
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"]["summary"].endswith(".")
        assert re.fullmatch(r"\d+[smh]", rule.get("for", "0s"))
        assert_balanced(rule["expr"])


def test_the_panels_of_the_dashboard_fit_on_it() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in panels():
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells
        for target in panel["targets"]:
            assert_balanced(target["expr"])
    assert len({panel["id"] for panel in panels()}) == len(panels())


def assert_balanced(expression: str) -> None:
    for opening, closing in ("()", "{}", "[]"):
        assert expression.count(opening) == expression.count(closing), expression


async def metric(server: Server, name: str) -> float:
    """A metric without labels; one that all processes agree on, if there are several."""
    async with server.client() as client:
        families = text_string_to_metric_families((await client.get("/metrics")).text)
        (value,) = {each.value for family in families for each in family.samples if each.name == name}
    return value


async def test_the_expiry_of_the_certificate_and_the_last_backup_are_told(tmp_path: Path) -> None:
    """Without TLS no certificate expires; a backup counts from when it is complete."""
    expires = datetime(2031, 5, 6, tzinfo=UTC)
    issued = trustme.CA().issue_cert("127.0.0.1", not_after=expires)
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    chain.write_bytes(issued.cert_chain_pems[0].bytes())
    key.write_bytes(issued.private_key_pem.bytes())
    config = TlsConfig()
    assert config.expires_s == math.inf
    config.use(Settings(data_dir=str(tmp_path), certfile=str(chain), keyfile=str(key)))
    assert config.expires_s == expires.timestamp()
    async with running_server(tmp_path / "data") as server:
        assert await metric(server, "trunkline_certificate_expiry_timestamp_seconds") == math.inf
        assert await metric(server, "trunkline_last_backup_timestamp_seconds") == 0
        began_s = time.time()
        await trio.to_thread.run_sync(back_up, tmp_path / "data", tmp_path / "copy")
        # The time of a file is that of the system's clock tick before.
        assert began_s - 1 <= await metric(server, "trunkline_last_backup_timestamp_seconds") <= time.time()
    async with running_server(tmp_path / "copy") as server:
        assert await metric(server, "trunkline_last_backup_timestamp_seconds") == 0
