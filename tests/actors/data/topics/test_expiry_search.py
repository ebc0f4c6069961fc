"""The search for expired messages goes on where it ended, and is not repeated where it can find nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.actors.house import running_house
from trunkline.actors.data.topics.expiry_search import _FOUND_MAX, _LOOKS_MAX, ExpirySearch, Looks

PREFIX = b"p"


class Stored:
    """Messages by their number, and when they expire. `looked` counts how many were looked at."""

    def __init__(self, *expiries: int | None, size_bytes: int = 10) -> None:
        self.expiries = dict(enumerate(expiries))
        self.size_bytes = size_bytes
        self.looked = 0

    def messages(self, low: bytes) -> Iterator[tuple[bytes, int, int | None]]:
        for number, expires_ms in self.expiries.items():
            key = PREFIX + number.to_bytes(4, "big")
            if key >= low:
                self.looked += 1
                yield key, self.size_bytes, expires_ms

    def remove(self, keys: list[bytes]) -> int:
        for key in keys:
            del self.expiries[int.from_bytes(key[1:], "big")]
        return len(keys)


async def test_what_cannot_have_expired_is_not_looked_at_again(tmp_path: Path) -> None:
    async with running_house(tmp_path / "data") as house:
        search, stored = ExpirySearch(house.system), Stored(None, 50, 20)
        assert search.find(PREFIX, stored.messages, 10, Looks()) == ([], False)
        assert search.find(PREFIX, stored.messages, 19, Looks()) == ([], False)
        assert stored.looked == 3
        found, _ = search.find(PREFIX, stored.messages, 20, Looks())
        assert found == search.find(PREFIX, stored.messages, 20, Looks())[0], "it was not removed"
        assert stored.remove(found) == 1
        assert search.find(PREFIX, stored.messages, 20, Looks()) == ([], False)
        stored.looked, stored.expiries[3] = 0, 30
        search.note(PREFIX, 30)
        assert search.find(PREFIX, stored.messages, 29, Looks()) == ([], False)
        assert not stored.looked
        assert len(search.find(PREFIX, stored.messages, 30, Looks())[0]) == 1


async def test_a_search_is_bounded_and_goes_on_where_it_ended(tmp_path: Path) -> None:
    async with running_house(tmp_path / "data") as house:
        search = ExpirySearch(house.system)
        stored = Stored(*[None] * (_LOOKS_MAX + 10), *[1] * (2 * _FOUND_MAX))
        assert search.find(PREFIX, stored.messages, 2, Looks()) == ([], False)
        assert stored.looked <= _LOOKS_MAX + 1
        looks, removed, may_be_more = Looks(), 0, True
        while may_be_more:
            found, may_be_more = search.find(PREFIX, stored.messages, 2, looks)
            removed += stored.remove(found)
        assert removed == 2 * _FOUND_MAX
        large = Stored(*[None] * 100, 1, size_bytes=1 << 18)
        looks = Looks()
        assert search.find(b"", large.messages, 2, looks) == ([], False)
        assert looks.left <= 0, "large messages count more"
