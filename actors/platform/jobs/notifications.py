"""Notifications that a job has ended, by mail and by a callback.

Owns their content. Does not own sending (`core/outgoing/mail.py`, `core/outgoing/http_calls.py`), nor when and how
often (`platform/jobs/runner.py`).
"""

from __future__ import annotations

from typing import Any

import msgspec
import structlog
import trio

from trunkline.actors.core.outgoing.http_calls import Undelivered, is_given_here, post
from trunkline.actors.core.outgoing.mail import Mail, MailMessage
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.platform.jobs.results import Results
from trunkline.limits.settings import Settings
from trunkline.limits.table import Limits
from trunkline.store.errors import StoreError

_log = structlog.get_logger("trunkline.jobs")

_OUTCOMES = {
    "completed": "has completed",
    "errored": "was refused",
    "failed": "has failed",
}
_ESCAPED = (
    "texts in it would be run as formulas by spreadsheets; an apostrophe is written before each of them. "
    "Take one leading apostrophe off to get the text as it was."
)


class Notifier:
    """Sends one notification once."""

    def __init__(self, settings: Settings, limits: Limits, mail: Mail, results: Results) -> None:
        self._limits = limits
        self._results = results
        self._private = settings.callback_private_networks
        self._mail = mail

    async def send(self, notification: Doc, job: Doc, now_ms: int) -> None:
        """Send a notification of `job`, which is its log with the link to its result.

        Raises `Undelivered` with a sentence.
        """
        if notification["by"] == "email":
            mail = _mail_message(notification["to"], job, now_ms)
            if "part" in notification:
                mail = mail._replace(id=f"{mail.id}-{notification['part']}")
                if job["status"] == "completed":
                    mail = mail._replace(whole=await self._result(job))
            await self._mail.send(mail)
            return
        # A string in quotation marks, as the IETF draft httpapi-idempotency-key-header wants it.
        headers = {"Idempotency-Key": f'"{job["id"]}"'}
        body = msgspec.json.encode(_callback_body(job))
        await post(
            notification["to"],
            body,
            headers,
            timeout_s=self._limits.outgoing_timeout_s,
            private=self._private or is_given_here(notification["to"], self._results.base_url),
        )

    async def _result(self, job: Doc) -> bytes:
        """The result of the job, which is a mail."""
        ids = bytes.fromhex(job["ownerId"]), bytes.fromhex(job["id"])
        try:
            whole = await trio.to_thread.run_sync(self._results.read, *ids, self._limits.report_bytes_max)
        except StoreError as failure:
            _log.error("a report cannot be read", reason=str(failure))
            raise Undelivered("The server could not read the report; its log says why.") from None
        if whole is None:
            raise Undelivered("The report has expired.")
        return whole


def _callback_body(job: Doc) -> dict[str, Any]:
    """The body of a callback: the job's log without the input of the job."""
    return {name: value for name, value in job.items() if name not in ("input", "_etag", "_type")}


def _mail_message(to: str, job: Doc, now_ms: int) -> MailMessage:
    lines = [
        f"The job {job['name']} that was queued at {job['runQueuedAt']} {_OUTCOMES[job['status']]}.",
        "",
    ]
    if "error" in job:
        lines += [job["error"]["message"], ""]
    output = job.get("output") or {}
    file = output.get("file")
    if file is not None:
        lines += [
            f"{file['name']}, {file['size']} bytes, can be fetched until {file['expires']}:",
            file["url"],
            "",
            "Whoever has this link can fetch the file.",
            f"Its SHA-256 is {file['sha256']}.",
            "",
        ]
    if output.get("escapedTexts"):
        lines += [f"{output['escapedTexts']} {_ESCAPED}", ""]
    lines += [
        f"Job: {job['id']}",
        *([f"Application: {job['applicationId']}"] if "applicationId" in job else []),
        f"About: {job['resourceType']} {job['resourceId']}",
    ]
    subject = f"{job['name']} {_OUTCOMES[job['status']]}"
    return MailMessage(job["id"], to, subject, "\n".join(lines) + "\n", now_ms)
