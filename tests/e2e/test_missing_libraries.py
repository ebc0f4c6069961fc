"""Without the library of an extra, what needs it is refused with a sentence that names the extra; all else works."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import trio

from tests.e2e.conftest import Server, running_server
from tests.e2e.server_process import environment, one_sentence
from tests.e2e.test_archive_buckets import KEYS
from tests.e2e.test_archives import configure
from tests.e2e.test_exports import ended
from trunkline.limits.extras import LIBRARIES, Extra

PROGRAM = "import sys; sys.modules[sys.argv.pop(1)] = None; from trunkline.http.cli.main import main; main()"
"""The command line where a library is not installed."""

SSO = '[sso."example.com"]\nurl = "https://a.example"\nissuer = "a"\ncertfile = "a.pem"\n'


async def refused(extra: Extra, *arguments: str) -> str:
    command = [sys.executable, "-c", PROGRAM, LIBRARIES[extra], *arguments]
    ended = await trio.run_process(
        command, capture_stdout=True, capture_stderr=True, check=False, env=environment({})
    )
    return one_sentence(
        subprocess.CompletedProcess(
            command, ended.returncode, ended.stdout.decode(), " ".join(ended.stderr.decode().split())
        )
    )


@pytest.mark.parametrize(
    ("extra", "toml", "sentence"),
    [
        ("s3", 'blobs = "s3://bucket/prefix"', "blobs is a bucket, and the library boto3 is missing"),
        ("saml", SSO, "sso names identity providers, and the library signxml is missing"),
        (
            "parquet",
            'archive_format = "parquet"',
            "archive_format is parquet, and the library pyarrow is missing",
        ),
    ],
)
async def test_a_server_that_needs_it_does_not_start(
    tmp_path: Path, extra: Extra, toml: str, sentence: str
) -> None:
    config = tmp_path / "config.toml"
    config.write_text(toml)
    said = await refused(
        extra, "serve", "--config", str(config), "--data", str(tmp_path / "data"), "--port", "0"
    )
    assert said.rstrip(".") == f"{sentence}; install it: pip install 'trunkline[{extra}]'"
    assert not (tmp_path / "data").exists()


async def test_a_check_of_a_bucket_says_what_it_needs(tmp_path: Path) -> None:
    async with running_server(tmp_path / "data"):
        pass
    config = tmp_path / "config.toml"
    config.write_text('blobs = "s3://bucket/prefix"')
    said = await refused("s3", "check", "--config", str(config), "--data", str(tmp_path / "data"))
    assert "the library boto3 is missing; install it: pip install 'trunkline[s3]'" in said


async def test_no_report_is_queued_without_what_draws_it(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    application = await server.application()
    dashboard = (await server.call("POST", f"{application}/dashboards", {"name": "d"}))["id"]
    report = {"toEmail": ["ann@example.com"]}
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    answer = await server.call("POST", f"{application}/dashboards/{dashboard}", report, status=501)
    assert answer == {
        "type": "NotImplemented",
        "message": "This server makes no reports: the library matplotlib is missing; "
        "its operator can install it: pip install 'trunkline[reports]'.",
    }
    assert (await server.call("GET", f"{application}/jobLogs"))["totalCount"] == 0


async def test_a_bucket_for_an_archive_is_refused(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """When it is configured, and when a day is archived there by a configuration of before."""
    application, archive = await server.application(), {"s3": {"bucket": "my-bucket", **KEYS}}
    await configure(server, application, includeEvents=True, **archive)
    monkeypatch.setitem(sys.modules, "boto3", None)
    sentence = (
        "archiveConfig.s3: the library boto3 is missing on this server; "
        "its operator can install it: pip install 'trunkline[s3]'."
    )
    queued = await server.call("GET", f"{application}/fullEventsArchive", status=202)
    log = await ended(server, application, queued["jobId"])
    assert log["status"] == "errored"
    assert log["error"]["message"] == sentence
    answer = await server.call("PATCH", application, {"archiveConfig": archive}, status=400)
    assert answer["message"] == sentence
