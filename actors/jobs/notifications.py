"""Telling people that their job has ended: by mail and by a callback.

Owns what is said. The ways out are `outgoing/mail.py` and `outgoing/http_calls.py`; the runner says when and how often.
"""

from __future__ import annotations

from typing import Any

import msgspec

from trunkline.actors.outgoing.http_calls import post
from trunkline.actors.outgoing.mail import Letter, Mail
from trunkline.actors.records.kind import Doc
from trunkline.limits.settings import Settings
from trunkline.limits.table import Limits
from trunkline.store.outbox import Outbox

_SAID = {
    "completed": "has completed",
    "errored": "was refused",
    "failed": "has failed",
}
_ESCAPED = (
    "texts in it would be run as formulas by spreadsheets; an apostrophe is written before each of them. "
    "Take one leading apostrophe off to get the text as it was."
)


class Notifier:
    """Tells one person of one job, one way, once."""

    def __init__(self, settings: Settings, limits: Limits, outbox: Outbox) -> None:
        self._limits = limits
        self._private = settings.callback_private_networks
        self._mail = Mail(settings, outbox, timeout_s=limits.outgoing_timeout_s)

    async def tell(self, way: Doc, job: Doc, now_ms: int) -> None:
        """Tell of `job`, which is its log with the link to its result. Raises `Undelivered` with a sentence."""
        if way["by"] == "email":
            await self._mail.send(_letter(way["to"], job, now_ms))
            return
        headers = {"Idempotency-Key": job["id"]}
        body = msgspec.json.encode(_told(job))
        await post(way["to"], body, headers, timeout_s=self._limits.outgoing_timeout_s, private=self._private)


def _told(job: Doc) -> dict[str, Any]:
    """What a callback carries: the job's log without what the caller said in the first place."""
    return {name: value for name, value in job.items() if name not in ("input", "_etag", "_type")}


def _letter(to: str, job: Doc, now_ms: int) -> Letter:
    lines = [
        f"The job {job['name']} that was queued at {job['runQueuedAt']} {_SAID[job['status']]}.",
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
        f"Application: {job['applicationId']}",
        f"About: {job['resourceType']} {job['resourceId']}",
    ]
    subject = f"{job['name']} {_SAID[job['status']]}"
    return Letter(job["id"], to, subject, "\n".join(lines) + "\n", now_ms)
