"""Records that come and go: devices, access keys, alarm rules and webhooks.

Owns the ledger of their names.
"""

from __future__ import annotations

from typing import Any, Final

from tests.soak.house import Part

KINDS: Final[dict[str, dict[str, Any]]] = {
    "devices": {"tags": [{"key": "sort", "value": "passing"}]},
    "webhooks": {},
    "alarm-rules": {
        "severity": "critical",
        "condition": {"type": "attribute", "attribute": "n", "comparison": "above", "value": 1e9},
        "deviceTags": [{"key": "sort", "value": "passing"}],
    },
    "device-recipes": {},
}
"""The list of each kind, and what a new record has beside its name."""
RECORDS_MAX: Final = 12


class Records(Part):
    """Records of one application."""

    pause_s = 2.0

    async def prepare(self) -> None:
        self._kept: dict[str, dict[str, str]] = {kind: {} for kind in KINDS}
        """The name of each record by its kind and id."""
        self._number = 0

    async def step(self) -> None:
        kind = self.random.choice(list(KINDS))
        kept = self._kept[kind]
        self._number += 1
        body = {"name": f"passing {self._number}"}
        if len(kept) >= RECORDS_MAX:
            id = self.random.choice(list(kept))
            await self.calls.call("record deleted", "DELETE", f"{self.path}/{kind}/{id}")
            del kept[id]
        elif kept and self.random.random() < 0.4:
            id = self.random.choice(list(kept))
            await self.calls.call("record changed", "PATCH", f"{self.path}/{kind}/{id}", body)
            kept[id] = body["name"]
        else:
            made = await self.calls.call(
                "record created", "POST", f"{self.path}/{kind}", {**KINDS[kind], **body}
            )
            kept[made["id"]] = body["name"]

    async def look(self) -> int:
        for kind, kept in self._kept.items():
            page = await self.calls.call(
                "records read", "GET", f"{self.path}/{kind}", query={"perPage": 1000}
            )
            named = {each["id"]: each["name"] for each in page["items"] if "passing" in each["name"]}
            assert named == kept, (kind, set(named.items()) ^ set(kept.items()))
        return sum(map(len, self._kept.values()))
