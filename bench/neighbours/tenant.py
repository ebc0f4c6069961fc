"""A tenant of the server that is measured: a user, the applications made for it, and the calls that it sends.

Owns making the records that the quiet and the greedy tenants need. Does not own what they do with them. Each tenant has
an address of its own in X-Forwarded-For, as it would have behind a proxy.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from trunkline.bench.client import Connection
from trunkline.bench.errors import BenchError
from trunkline.bench.ledger import ATTRIBUTES
from trunkline.bench.session import Json, Session, record_id

ROWS_PER_CALL = 500
COLUMN: Json = {"name": "a", "dataType": "string", "constraint": "optional"}
ROW_TEXT = "x" * 100
_BOUNDARY = "part-of-the-bench"


class Account(NamedTuple):
    """A user that the server has."""

    email: str
    password: str


class Tenant:
    """A signed-in user and its applications, each as the path of its calls."""

    def __init__(self, session: Session, account: Account, address: str) -> None:
        self.session = session
        self.account = account
        self.applications: list[str] = []
        self._forwarded = {"x-forwarded-for": address}
        self._signed = Connection(session.origin, token=session.token)
        self._anonymous = Connection(session.origin)

    @classmethod
    async def sign_in(cls, url: str, account: Account, address: str, applications: int) -> Tenant:
        """Sign in and create so many applications."""
        session = Session(url, connections_max=4)
        await session.login(account.email, account.password)
        tenant = cls(session, account, address)
        for number in range(applications):
            made = await session.create_application(f"bench neighbours {number}")
            tenant.applications.append(f"/applications/{made}")
        return tenant

    def close(self) -> None:
        """Close the connections of the session."""
        self.session.close()

    def request(self, method: str, path: str, body: object = None, *, anonymous: bool = False) -> bytes:
        """The bytes of a call; a body is JSON."""
        return self.raw(
            method, path, None if body is None else msgspec.json.encode(body), anonymous=anonymous
        )

    def raw(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        kind: str = "application/json",
        anonymous: bool = False,
    ) -> bytes:
        """The bytes of a call with an encoded body."""
        headers = dict(self._forwarded) if body is None else {**self._forwarded, "content-type": kind}
        return (self._anonymous if anonymous else self._signed).encode(method, path, body, headers)

    # Records.

    async def make(self, path: str, body: Json) -> str:
        """Create a record; the answer is its path."""
        return f"{path}/{record_id(await self.session.call('POST', path, body))}"

    async def device(self, application: str, name: str = "device") -> str:
        """Create a device with a few attributes."""
        return await self.make(f"{application}/devices", {"name": name, "attributes": ATTRIBUTES})

    async def table(self, application: str, rows: int) -> str:
        """Create a table with a column of texts and so many rows."""
        path = await self.make(f"{application}/data-tables", {"name": "table", "columns": [COLUMN]})
        for first in range(0, rows, ROWS_PER_CALL):
            numbers = range(first, min(first + ROWS_PER_CALL, rows))
            body = [{"a": f"row {number} {ROW_TEXT}"} for number in numbers]
            await self.session.call("POST", f"{path}/rows", body)
        return path

    async def flow(self, application: str, trigger: Json, nodes: Sequence[Json], **fields: Any) -> str:
        """Create a workflow."""
        body = {
            "name": f"flow {secrets.token_hex(4)}",
            "enabled": True,
            "triggers": [trigger],
            "nodes": list(nodes),
            **fields,
        }
        return await self.make(f"{application}/flows", body)

    async def button(self, application: str, *nodes: Json, payload: object = None) -> bytes:
        """Create a workflow with a button and these nodes; the answer is the call that presses it."""
        trigger = {
            "type": "virtualButton",
            "key": "go",
            "meta": {"id": "go"},
            "outputIds": [[nodes[0]["id"]]],
        }
        path = await self.flow(application, trigger, nodes)
        body = {"key": "go", "payload": {} if payload is None else payload}
        return self.request("POST", f"{path}/virtualButton", body)

    async def webhook(self, application: str, *nodes: Json) -> bytes:
        """Create a webhook whose callers wait for a workflow of these nodes; the answer is a call of it."""
        body = {"name": f"hook {secrets.token_hex(4)}", "waitForReply": True}
        made = await self.session.call("POST", f"{application}/webhooks", body)
        trigger = {"type": "webhook", "key": record_id(made), "outputIds": [[nodes[0]["id"]]]}
        await self.flow(application, trigger, nodes)
        return self.request("POST", f"/webhooks/{made['token']}", {"level": 7}, anonymous=True)

    async def file(self, application: str, data: bytes) -> str:
        """Upload a public file; the answer is the path from which everybody can read it."""
        made = await self.order(application, len(data))
        target, body = form(made, data)
        async with Connection(self.session.origin) as connection:
            answer = await connection.request("POST", target, body, {"content-type": FORM_TYPE})
        if answer.status >= 300:
            raise BenchError(f"The upload of a file was answered with {answer.status}.")
        shown = await self.session.call("GET", f"{application}/file/{record_id(made)}")
        return str(urlsplit(shown["url"]).path)

    async def order(self, application: str, size: int) -> Json:
        """A new public file that waits for its content."""
        body = {
            "name": f"file{secrets.token_hex(4)}",
            "type": "file",
            "fileSize": size,
            "parentDirectory": "/",
        }
        made: Json = await self.session.call("POST", f"{application}/files", body)
        return made


FORM_TYPE = f"multipart/form-data; boundary={_BOUNDARY}"


def form(order: Json, data: bytes) -> tuple[str, bytes]:
    """The path and the body of an upload."""
    parts = [
        f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in order["upload"]["fields"].items()
    ]
    parts.append(
        f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    )
    return urlsplit(order["upload"]["url"]).path, b"%b%b\r\n--%b--\r\n" % (
        "".join(parts).encode(),
        data,
        _BOUNDARY.encode(),
    )
