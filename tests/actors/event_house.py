"""Events in a house: short ways to make, change and read them."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.actors.house import House
from trunkline.actors.core.records.messages import Creator
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.structs import Message
from trunkline.actors.data.events import messages
from trunkline.actors.data.events import messages as events
from trunkline.store import keys

BY = Creator("0123456789abcdef01234567", "user", "owner@example.com")


class Events:
    """The events of the house's application."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.ref = Ref("eventLog", house.application, house.application)

    async def ask(self, message: Message) -> Any:
        return (await self.house.system.ask(self.ref, message)).value

    async def create(self, **fields: Any) -> bytes:
        body = msgspec.convert({"level": "info", "subject": "it is hot", **fields}, events.EventPost)
        id: bytes = (await self.ask(events.CreateEvent(body=body, by=BY))).id
        return id

    async def patch(self, id: bytes, /, **fields: Any) -> None:
        await self.ask(events.PatchEvent(event=id, body=msgspec.convert(fields, events.EventPatch), by=BY))

    async def patch_many(self, choice: dict[str, Any], **fields: Any) -> int:
        query, body = (
            msgspec.convert(choice, events.EventChoice),
            msgspec.convert(fields, events.EventPatch),
        )
        count: int = await self.ask(events.PatchEvents(query=query, body=body, by=BY))
        return count

    async def delete_many(self, query: dict[str, Any]) -> int:
        count: int = await self.ask(events.DeleteEvents(body=query))
        return count

    async def get(self, id: bytes) -> dict[str, Any]:
        found: dict[str, Any] = await self.house.read(
            messages.GetEvent(application=self.house.application, event=id)
        )
        return found

    async def page(self, **query: Any) -> dict[str, Any]:
        page = msgspec.convert(query, events.EventPage)
        found: dict[str, Any] = await self.house.read(
            messages.ListEvents(application=self.house.application, query=page)
        )
        return found

    async def subjects(self, **query: Any) -> list[str]:
        return [item["subject"] for item in (await self.page(**query))["items"]]

    async def most_recent(self, **query: Any) -> tuple[str | None, int]:
        """The subject of the event, and the number of new events."""
        choice = msgspec.convert(query, events.RecentChoice)
        found = await self.house.read(
            messages.GetMostRecentEvent(application=self.house.application, query=choice)
        )
        return found.get("event", {}).get("subject"), found["newCount"]

    def beside(self) -> dict[bytes, bytes]:
        """What lies beside the records of events, without the log of changes."""
        log = self.house.application + bytes(keys.ID_BYTES)
        with self.house.system.store.snapshot() as snapshot:
            found = snapshot.range(keys.EVENTS, b"", None)
            return {key: value for key, value in found if not key.startswith(log)}
