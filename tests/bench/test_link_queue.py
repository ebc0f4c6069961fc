"""The queue of a link's frames: their numbers, what acknowledgements remove, and its file after a crash."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cbor2
import pytest

from tests.http.link.link_document import check_frame
from trunkline.bench import link_queue
from trunkline.bench.errors import BenchError
from trunkline.bench.link_frames import COLUMNS, ROWS, STATE, typed
from trunkline.bench.link_queue import FrameQueue

PERIPHERAL = "575ece2b7ae143cd83dc4a9b"


def state(value: int) -> list[Any]:
    return [STATE, None, {"temp": value}]


def frames(queue: FrameQueue) -> list[Any]:
    return [cbor2.loads(entry.data) for entry in queue.entries.values()]


def test_frames_are_as_the_document_says() -> None:
    queue = FrameQueue()
    queue.put(state(1))
    queue.put([ROWS, ["temp"], [[5, 1], [6, None]]], PERIPHERAL, backlog=True)
    queue.put([COLUMNS, 5, typed(70, bytes(4)), {"temp": typed(86, bytes(8))}])
    for entry in queue.entries.values():
        check_frame("client", entry.data)
    assert [frame[1] for frame in frames(queue)] == [1, 2, 3]
    assert frames(queue)[1][4] == {"device": PERIPHERAL, "backlog": True}


def test_an_acknowledgement_is_for_one_lane_and_a_welcome_for_the_own_device() -> None:
    queue = FrameQueue()
    queue.put(state(1))
    queue.put(state(2), backlog=True)
    queue.put(state(3), PERIPHERAL)
    queue.put(state(4))
    queue.stored(3, backlog=False, own_only=True)
    assert list(queue.entries) == [2, 3, 4]
    queue.stored(3, backlog=False)
    assert list(queue.entries) == [2, 4]
    queue.stored(4, backlog=True)
    assert list(queue.entries) == [4]


def test_a_refused_frame_gets_a_new_number() -> None:
    queue = FrameQueue()
    queue.put(state(1), PERIPHERAL)
    queue.put(state(2))
    made = queue.renew(1)
    assert made is not None
    assert frames(queue) == [[1, 2, None, {"temp": 2}], [1, 3, None, {"temp": 1}, {"device": PERIPHERAL}]]
    assert queue.renew(1) is None
    assert queue.drop(3) is not None
    assert list(queue.entries) == [2]


def test_a_file_keeps_session_numbers_and_frames(tmp_path: Path) -> None:
    file = tmp_path / "queue"
    queue = FrameQueue(file)
    for value in (1, 2, 3):
        queue.put(state(value))
    queue.stored(1, backlog=False)
    queue.renew(2)
    queue.close()
    again = FrameQueue(file)
    assert again.session == queue.session
    assert again.entries == queue.entries
    assert again.put(state(5)).n == 5
    again.stored(5, backlog=False)
    again.close()
    empty = FrameQueue(file)
    assert (len(empty), empty.put(state(6)).n) == (0, 6)
    empty.close()


def test_a_file_that_was_cut_anywhere_has_the_frames_before_the_cut(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    queue = FrameQueue(whole)
    ends = [whole.stat().st_size]
    for value in range(3):
        queue.put(state(value))
        ends.append(whole.stat().st_size)
    queue.close()
    data = whole.read_bytes()
    for cut in range(ends[0], len(data) + 1):
        file = tmp_path / f"cut-{cut}"
        file.write_bytes(data[:cut])
        found = FrameQueue(file)
        kept = sum(end <= cut for end in ends[1:])
        assert [frame[3]["temp"] for frame in frames(found)] == list(range(kept))
        assert found.put(state(9)).n == kept + 1
        found.close()
        again = FrameQueue(file)
        assert again.entries == found.entries
        again.close()


def test_a_new_number_is_given_whole_or_not_at_all(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    queue = FrameQueue(whole)
    queue.put(state(1))
    before = whole.stat().st_size
    queue.renew(1)
    queue.close()
    data = whole.read_bytes()
    for cut in range(before, len(data) + 1):
        file = tmp_path / f"cut-{cut}"
        file.write_bytes(data[:cut])
        found = FrameQueue(file)
        assert list(found.entries) == ([2] if cut == len(data) else [1])
        found.close()


def test_a_file_does_not_grow_with_what_is_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_queue, "GARBAGE_BYTES_MAX", 1000)
    file = tmp_path / "queue"
    queue = FrameQueue(file)
    queue.put(state(0), backlog=True)
    for n in range(2, 200):
        queue.put(state(n))
        queue.stored(n, backlog=False)
    assert file.stat().st_size < 1500
    queue.close()
    again = FrameQueue(file)
    assert (again.session, list(again.entries), again.put(state(1)).n) == (queue.session, [1], 200)
    again.close()


def test_a_file_is_of_one_link(tmp_path: Path) -> None:
    queue = FrameQueue(tmp_path / "queue")
    with pytest.raises(BenchError, match="in use"):
        FrameQueue(tmp_path / "queue")
    queue.close()
    with pytest.raises(BenchError, match="cannot be used"):
        FrameQueue(tmp_path / "none" / "queue")
