"""What JetStream answers: the errors and values of its answers, and what the numbers in them mean.

Source: https://docs.nats.io/reference/reference-protocols/nats_api_reference
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any, Final

from trunkline.store.errors import LogBroken, LogUnreachable, StoreBroken
from trunkline.store.log import LogState, NotNext
from trunkline.store.nats_codec import Message

WRONG_LAST: Final = 10071
NOT_SETTLED: Final = 10164
"""Another message of the subject is under way, so nobody can say yet which is its last one."""
NO_PEERS: Final = 10005
"""There are too few servers for a stream, or they do not know each other yet, as when they have just been started."""
NO_MESSAGE: Final = 10037
NO_STREAM: Final = 10059
NAME_TAKEN: Final = 10058
PART: Final = struct.Struct(">BHH")


def place_of(answer: Message) -> int:
    """The place of what was appended; of a batch that of the last message. Raises NotNext and LogUnreachable."""
    found = object_of(answer)
    if error_of(found) == WRONG_LAST:
        raise NotNext(_last_of(found))
    # 5xx: such as a disk that is full. It may be tried again.
    if error_of(found) == NOT_SETTLED or (
        error_of(found) is not None and found["error"].get("code", 0) >= 500
    ):
        raise LogUnreachable(_sentence(found["error"]))
    place: int = checked(found)["seq"]
    return place


def state_of(info: Mapping[str, Any]) -> LogState:
    """What a stream has, as the answer about it says."""
    state = info["state"]
    return LogState(max(state["first_seq"], 1), state["last_seq"], state["bytes"])


def object_of(answer: Message) -> dict[str, Any]:
    """The JSON object of an answer. Raises LogBroken."""
    try:
        found = json.loads(answer.payload)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise LogBroken(f"The log answers with {answer.payload[:80]!r}.")
    return found


def error_of(answer: Mapping[str, Any]) -> int | None:
    """The number of the error of an answer; None if it has none."""
    error = answer.get("error")
    return None if error is None else int(error.get("err_code", 0))


def checked(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer without an error. Raises LogBroken where there is no stream, LogUnreachable and StoreBroken."""
    if error_of(answer) is not None:
        raise _refused(answer)
    return answer


def _refused(answer: Mapping[str, Any]) -> StoreBroken | LogUnreachable:
    error = answer["error"]
    if error.get("err_code") == NO_STREAM:
        return LogBroken("The log does not exist. It is never made again by itself.")
    # 503: there is no leader, or the servers are too busy.
    waits = error.get("code") == 503 or error.get("err_code") == NO_PEERS
    return LogUnreachable(_sentence(error)) if waits else StoreBroken(_sentence(error))


def _sentence(error: Mapping[str, Any]) -> str:
    return f"The log refuses: {error.get('description', 'unknown')} ({error.get('err_code', 0)})."


def _last_of(answer: Mapping[str, Any]) -> int:
    """The last sequence that the refusal of an append names."""
    _, _, number = str(answer["error"].get("description", "")).rpartition(" ")
    return int(number) if number.isascii() and number.isdigit() else -1


def part_of(raw: bytes, place: int) -> tuple[int, int, bytes]:
    """The number of a part, that of all, and the part."""
    if len(raw) < PART.size or raw[0] != 1:
        raise LogBroken(f"The log has a message at {place} that is not an entry.")
    _, number, count = PART.unpack_from(raw)
    return number, count, raw[PART.size :]


def sequence_of(message: Message) -> int:
    """The sequence of a message in the stream: `$JS.ACK.stream.consumer.delivered.sequence...`, or with a domain and an
    account before the stream."""
    words = message.reply.split(".")
    return int(words[5] if len(words) == 9 else words[7])
