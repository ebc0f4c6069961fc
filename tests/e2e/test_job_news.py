"""Notifications of the end of a job: by mail and by callback, at least once, and never to a forbidden address."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trustme

from tests.e2e.conftest import EMAIL, Server
from tests.e2e.receivers import CallbackReceiver, MailServer, listening
from tests.e2e.test_exports import ended, export, fetched, rows
from tests.patience import PATIENCE_S
from trunkline.actors.core.outgoing import http_calls as callbacks

QUICK = {"outgoing_pause_s": 0.01}
Start = Callable[..., Any]


class Names(trio.abc.HostnameResolver):
    """Names of a test and the addresses that they stand for, one list for each time that somebody asks."""

    def __init__(self, **names: list[str]) -> None:
        self.names = {name.replace("_", "."): answers for name, answers in names.items()}
        self.asked: list[str] = []

    async def getaddrinfo(self, host: Any, port: Any, *_more: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        self.asked.append(name)
        answers = self.names.get(name, [name])
        address = answers.pop(0) if len(answers) > 1 else answers[0]
        family = trio.socket.AF_INET6 if ":" in address else trio.socket.AF_INET
        return [(family, trio.socket.SOCK_STREAM, 6, "", (address, port))]

    async def getnameinfo(self, sockaddr: Any, flags: int) -> Any:
        raise AssertionError("nothing here asks for the name of an address")


@asynccontextmanager
async def resolving(**names: list[str]) -> AsyncIterator[Names]:
    """Let names stand for addresses of the test's choice."""
    found = Names(**names)
    before = trio.socket.set_custom_hostname_resolver(found)
    try:
        yield found
    finally:
        trio.socket.set_custom_hostname_resolver(before)


def told(log: dict[str, Any], by: str) -> dict[str, Any]:
    """How somebody was told."""
    (way,) = [way for way in log["output"]["told"] if way["by"] == by]
    assert isinstance(way, dict)
    return way


# Mail.


async def test_mail_goes_to_the_mail_server(start_server: Start, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("right\n")
    async with listening(MailServer()) as mail:
        settings = {
            "smtp_host": "127.0.0.1",
            "smtp_port": mail.port,
            "smtp_tls": "none",
            "smtp_from": "Devices <devices@example.com>",
            "smtp_user": "me",
            "smtp_password_file": str(password),
            "public_url": "https://devices.example.com",
        }
        async with start_server(**settings) as server:
            _, log = await export(
                server, await server.device(await server.application()), {"email": "b@example.com"}
            )
            (mailed,) = await mail.number(1)
            assert (mailed.sender, mailed.recipients) == ("devices@example.com", ["b@example.com"])
            assert mailed.user == "me:right"
            assert log["output"]["file"]["url"].startswith("https://devices.example.com/downloads?token=")
            assert log["output"]["file"]["url"] in mailed.message.get_content()
            assert mailed.message["Message-ID"] == f"<{log['id']}@example.com>"
            assert "at" in told(log, "email")
            assert not (tmp_path / "data" / "outbox").exists()


@pytest.mark.parametrize("way", ["starttls", "tls"])
async def test_mail_is_encrypted(
    start_server: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    mail = MailServer(context)
    if way == "tls":
        plain = mail.serve

        async def secured(stream: trio.abc.Stream) -> None:
            await plain(trio.SSLStream(stream, context, server_side=True, https_compatible=True))

        mail.serve = secured  # type: ignore[method-assign]
    async with listening(mail):
        settings = {"smtp_host": "localhost", "smtp_port": mail.port, "smtp_tls": way}
        async with start_server(**settings) as server:
            _, log = await export(server, await server.device(await server.application()))
            assert "at" in told(log, "email"), told(log, "email")
            (mailed,) = await mail.number(1)
            assert mailed.recipients == [EMAIL]


async def test_mail_is_not_sent_where_the_certificate_is_not_right(start_server: Start) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trustme.CA().issue_cert("localhost").configure_cert(context)
    async with listening(MailServer(context)) as mail:
        settings = {"smtp_host": "localhost", "smtp_port": mail.port, "limits": QUICK}
        async with start_server(**settings) as server:
            _, log = await export(server, await server.device(await server.application()))
            assert "certificate" in told(log, "email")["problem"]
            assert len(mail) == 0


async def test_a_refused_recipient_and_a_wrong_password_stand_in_the_log(start_server: Start) -> None:
    async with listening(MailServer(refused=frozenset({EMAIL}))) as mail:
        settings = {"smtp_host": "127.0.0.1", "smtp_port": mail.port, "smtp_tls": "none", "limits": QUICK}
        async with start_server(**settings) as server:
            device = await server.device(await server.application())
            _, log = await export(server, device)
            assert log["status"] == "completed"
            assert told(log, "email")["problem"] == "The mail server refused the recipient: 550 nobody here."
        wrong = {"smtp_user": "me", "smtp_password": "wrong-and-secret"}
        async with start_server(**settings, **wrong) as server:
            _, log = await export(server, device, {"email": "b@example.com"})
            assert told(log, "email")["problem"] == "The mail server refused the login: 535."
            assert len(mail) == 0


# Callbacks.


async def test_a_callback_tells_what_came_of_the_job(start_server: Start) -> None:
    async with (
        listening(CallbackReceiver()) as receiver,
        start_server(callback_private_networks=True) as server,
    ):
        device = await server.device(await server.application())
        await server.call("POST", f"{device}/state", {"data": {"temp": 1}})
        _, log = await export(server, device, {"callbackUrl": f"{receiver.url}?token=private"})
        ((path, headers, body),) = await receiver.number(1)
        assert path == "/done?token=private"
        assert headers["host"] == f"127.0.0.1:{receiver.port}"
        assert headers["content-type"] == "application/json"
        assert headers["idempotency-key"] == f'"{body["jobId"]}"'
        assert body["jobId"] == log["id"]
        assert (body["status"], body["name"]) == ("completed", "device.export")
        assert len(rows(await fetched(server, body["output"]["file"]["url"]))) == 2
        assert told(log, "callback")["to"] == receiver.url
        assert "private" not in str(log)


async def test_a_callback_is_tried_again_and_given_up_with_a_sentence(start_server: Start) -> None:
    answers = ["500 No", "503 No", "200 OK", "302 Found\r\nlocation: /elsewhere"]
    receiver = CallbackReceiver(lambda number: answers[min(number, 3)])
    limits = {**QUICK, "outgoing_attempts_max": 3}
    async with listening(receiver), start_server(callback_private_networks=True, limits=limits) as server:
        device = await server.device(await server.application())
        _, log = await export(server, device, callbackUrl=receiver.url)
        assert "at" in told(log, "callback")
        assert len(receiver) == 3
        _, log = await export(server, device, callbackUrl=receiver.url)
        assert "302 (redirects are not followed)" in told(log, "callback")["problem"]
        assert log["status"] == "completed"
        assert {call.path for call in await receiver.number(6)} == {"/done"}


@pytest.mark.parametrize("name", ["receiver.example", "other.example"])
async def test_a_callback_by_tls_needs_the_right_certificate(
    start_server: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The certificate is that of the name, although the connection goes to an address."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("receiver.example").configure_cert(context)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    callbacks._tls_context.cache_clear()
    receiver = CallbackReceiver()
    plain = receiver.serve

    async def secured(stream: trio.abc.Stream) -> None:
        with contextlib.suppress(trio.BrokenResourceError):
            await plain(trio.SSLStream(stream, context, server_side=True, https_compatible=True))

    receiver.serve = secured  # type: ignore[method-assign]
    async with (
        listening(receiver),
        resolving(**{name.replace(".", "_"): ["127.0.0.1"]}),
        start_server(limits=QUICK, callback_private_networks=True) as server,
    ):
        body = {"callbackUrl": f"https://{name}:{receiver.port}/done"}
        _, log = await export(server, await server.device(await server.application()), body)
        if name == "receiver.example":
            assert "at" in told(log, "callback"), told(log, "callback")
            ((_, headers, _),) = await receiver.number(1)
            assert headers["host"] == f"{name}:{receiver.port}"
        else:
            assert "ertificate" in told(log, "callback")["problem"]
            assert len(receiver) == 0
    callbacks._tls_context.cache_clear()


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/done",
        "http://localhost:{port}/done",
        "http://[::1]:{port}/done",
        "http://[::ffff:127.0.0.1]:{port}/done",
        "http://169.254.169.254/latest/meta-data",
        "http://10.0.0.1/",
        "http://192.168.1.1/",
        "http://[fd00:ec2::254]/",
        "http://0.0.0.0/",
        "http://me:secret@example.com/",
        "ftp://example.com/",
        "http://",
    ],
)
async def test_an_address_that_may_not_be_called_is_refused_at_once(server: Server, url: str) -> None:
    device = await server.device(await server.application())
    async with listening(CallbackReceiver()) as receiver:
        body = {"callbackUrl": url.format(port=receiver.port)}
        refused = await server.call("POST", f"{device}/export", body, status=400)
        assert "callbackUrl" in refused["message"]
        assert len(receiver) == 0


@pytest.mark.parametrize("host", ["inside.example", "2130706433", "0x7f.1"])
async def test_a_name_that_stands_for_a_private_address_is_not_called(start_server: Start, host: str) -> None:
    async with (
        listening(CallbackReceiver()) as receiver,
        resolving(**{host.replace(".", "_"): ["127.0.0.1"]}),
        start_server(limits=QUICK) as server,
    ):
        body = {"callbackUrl": f"http://{host}:{receiver.port}/"}
        _, log = await export(server, await server.device(await server.application()), body)
        assert "not public" in told(log, "callback")["problem"]
        assert len(receiver) == 0


async def test_a_name_is_resolved_once_and_that_address_is_called(start_server: Start) -> None:
    """Were it resolved again for the connection, a second answer could lead somewhere else."""
    async with (
        listening(CallbackReceiver()) as receiver,
        resolving(turning_example=["127.0.0.1", "127.0.0.99"]) as names,
        start_server(limits=QUICK, callback_private_networks=True) as server,
    ):
        body = {"callbackUrl": f"http://turning.example:{receiver.port}/x"}
        _, log = await export(server, await server.device(await server.application()), body)
        assert "at" in told(log, "callback")
        ((_, headers, _),) = await receiver.number(1)
        assert headers["host"] == f"turning.example:{receiver.port}"
        assert names.asked.count("turning.example") == 1


async def test_who_was_not_told_before_a_restart_is_told_after_it(start_server: Start) -> None:
    receiver = CallbackReceiver()
    receiver.reserve()  # now its port is known, and nobody listens there
    limits = {"outgoing_pause_s": 3600}
    async with start_server(callback_private_networks=True, limits=limits) as server:
        application = await server.application()
        device = await server.device(application)
        body = {"callbackUrl": receiver.url}
        queued = await server.call("POST", f"{device}/export", body, status=202)
        path = f"{application}/jobLogs/{queued['jobId']}"
        with trio.fail_after(PATIENCE_S):
            while "runCompletedAt" not in await server.call("GET", path):
                pass
        await server.call(
            "POST", f"{device}/export", status=202
        )  # it does not wait for the callback of the first
    async with listening(receiver), start_server(callback_private_networks=True) as server:
        await receiver.number(1)
        log = await ended(server, application, queued["jobId"])
        assert "at" in told(log, "callback")
        assert "at" in told(log, "email")
        assert len(receiver) == 1
