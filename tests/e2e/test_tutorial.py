"""The program of the tutorial runs as it stands, on a server that was started as it says."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import trio

from tests.e2e.server_process import environment, started
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow


async def test_the_tutorial_works_as_it_stands(tmp_path: Path, checkout: Path) -> None:
    """From nothing to a chart, an event and an export; the chart is the picture that the page shows."""
    text = (checkout / "docs" / "guides" / "first-steps.md").read_text("utf-8")
    program = "\n\n".join(re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S))
    (start,) = re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S)
    (port,) = re.findall(r"--port (\d+)", start)
    assert port != "8080"  # the demo of the README may still use that
    assert f'"http://127.0.0.1:{port}"' in program
    owner = dict(re.findall(r"(TRUNKLINE_\w+)='?([^\s']+)", start))
    async with started(tmp_path / "data", env=owner) as server:
        assert await server.listens(), server.log
        server.token = await server.log_in(owner["TRUNKLINE_ADMIN_EMAIL"], owner["TRUNKLINE_ADMIN_PASSWORD"])
        with trio.fail_after(PATIENCE_S):
            done = await trio.run_process(
                [sys.executable, "-c", program],
                capture_stdout=True,
                stderr=subprocess.STDOUT,
                check=False,
                cwd=tmp_path,
                env=environment({**owner, "URL": server.url, "no_proxy": "*", "PYTHONIOENCODING": "utf-8"}),
            )
        said = done.stdout.decode()
        assert done.returncode == 0, said
        (application,) = (await server.call("GET", "/applications"))["items"]
        path = f"/applications/{application['id']}"
        assert (await server.call("GET", f"{path}/devices"))["totalCount"] == 30
        (event,) = (await server.call("GET", f"{path}/events"))["items"]
        assert (event["state"], event["deviceName"]) == ("resolved", "room-204")
    assert "10 devices on the second floor" in said
    chart = (tmp_path / "chart.svg").read_text("utf-8")
    lines = ET.fromstring(chart).findall("{http://www.w3.org/2000/svg}polyline")
    assert [len(line.attrib["points"].split()) for line in lines] == [24, 24, 24]
    assert chart == (checkout / "docs" / "chart.svg").read_text("utf-8"), "docs/chart.svg is another chart"
    with (tmp_path / "states.csv").open(encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == 30 * 24
