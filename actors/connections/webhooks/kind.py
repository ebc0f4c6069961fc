"""The kind of the records of webhooks."""

from __future__ import annotations

from typing import Final

from trunkline.actors.core.records.kind import Kind

WEBHOOK: Final = Kind(name="webhook", noun="webhook", counted_as="webhookCount", audited_as="Webhook")
