"""The frames of clients of the link: what they become, and that whatever is wrong is refused with a sentence."""

from __future__ import annotations

import random
from typing import Any

import cbor2
import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.actors.fleet.devices.record.messages import StateReport
from trunkline.actors.fleet.devices.state.link_messages import Columns
from trunkline.http.link import frames
from trunkline.http.link.frames import Frame, Hello, Malformed, Received, States, decode_frame
from trunkline.http.link.uniform_rows import uniform_rows

T = 1_714_564_800_000
DEVICE = "0123456789abcdef01234567"


def both(frame: Any) -> list[Frame]:
    """A frame without typed arrays, decoded in both forms."""
    return [
        decode_frame(cbor2.dumps(frame), text=False),
        decode_frame(msgspec.json.encode(frame), text=True),
    ]


def plain(states: Frame) -> list[tuple[Any, dict[str, Any]]]:
    assert isinstance(states, States)
    reports = states.body.reports() if isinstance(states.body, Columns) else [states.body]
    return [(report.time, report.data) for report in reports]


def tagged(tag: int, kind: str, *numbers: float) -> cbor2.CBORTag:
    return cbor2.CBORTag(tag, np.array(numbers, kind).tobytes())


def test_hello_and_a_received_command() -> None:
    for found in both([0, {"session": 2**64 - 1, "token": "t"}]):
        assert found == Hello(2**64 - 1, "t")
    for found in both([0, {"session": 1, "nearest": True}]):
        assert found == Hello(1, None, nearest=True)
    assert both([4, 41]) == [Received(41, None)] * 2
    assert both([4, 41, DEVICE]) == [Received(41, bytes.fromhex(DEVICE))] * 2


def test_one_state_has_all_options() -> None:
    options = {"device": DEVICE, "backlog": True, "flowVersion": "v2", "meta": {"a": [1, None]}}
    for found in both([1, 7, T, {"a": 1, "b": 2.5, "c": "x", "d": True}, options]):
        assert isinstance(found, States)
        assert (found.n, found.device, found.backlog, found.count) == (7, bytes.fromhex(DEVICE), True, 1)
        assert found.body == StateReport(
            data={"a": 1, "b": 2.5, "c": "x", "d": True},
            time=T,
            flow_version="v2",
            meta={"a": [1, None]},
        )
    assert plain(both([1, 1, None, {"a": 1}])[0]) == [(None, {"a": 1})]


def test_a_small_time_is_in_milliseconds_as_well() -> None:
    assert plain(both([1, 1, 5000, {"a": 1}])[0]) == [(5, {"a": 1})]


def test_rows_and_columns_become_the_same_states() -> None:
    rows = [[T, 1, 2.5, None, True], [T + 5, 2, 3.5, "x", None]]
    columns = {"a": [1, 2], "b": [2.5, 3.5], "c": [None, "x"], "d": [True, None]}
    expected = [(T, {"a": 1, "b": 2.5, "d": True}), (T + 5, {"a": 2, "b": 3.5, "c": "x"})]
    for found in [*both([2, 1, list(columns), rows]), *both([3, 1, T, [0, 5], columns])]:
        assert plain(found) == expected
        assert isinstance(found, States)
        assert found.count == 2


@pytest.mark.parametrize(
    ("tag", "kind", "numbers"),
    [
        (64, "u1", (0, 255)),
        (69, "<u2", (0, 65535)),
        (70, "<u4", (0, 2**32 - 1)),
        (71, "<u8", (0, 2**64 - 1)),
        (72, "i1", (-128, 127)),
        (77, "<i2", (-32768, 32767)),
        (78, "<i4", (-(2**31), 2**31 - 1)),
        (79, "<i8", (-(2**63), 2**63 - 1)),
        (85, "<f4", (0.5, -2.0)),
        (86, "<f8", (0.1, -1e300)),
    ],
)
def test_a_typed_array_keeps_every_number(tag: int, kind: str, numbers: tuple[float, float]) -> None:
    frame = [3, 1, T, tagged(70, "<u4", 0, 1), {"a": tagged(tag, kind, *numbers)}]
    found = plain(decode_frame(cbor2.dumps(frame), text=False))
    assert found == [(T, {"a": numbers[0]}), (T + 1, {"a": numbers[1]})]
    assert [type(data["a"]) for _, data in found] == [type(number) for number in numbers]


@st.composite
def uniform_frames(draw: st.DrawFn) -> list[Any]:
    """Rows in which each column has numbers of one type and width, nearly always."""
    names = draw(st.lists(st.text(max_size=30), min_size=1, max_size=30, unique=True))
    kinds = [
        st.integers(0, 23),
        st.integers(24, 255),
        st.integers(256, 65535),
        st.integers(65536, 2**32 - 1),
        st.integers(2**32, 2**64 - 1),
        st.integers(-9, 9),
        st.floats(width=32),
        st.floats(),
        st.floats() | st.none(),
    ]
    columns = [draw(st.sampled_from(kinds[3:5])), *(draw(st.sampled_from(kinds)) for _ in names)]
    count = draw(st.integers(1, 5))
    rows = [[draw(column) for column in columns] for _ in range(count)]
    options: list[Any] = draw(st.sampled_from([[], [{"backlog": True}], [{"who": 1}], [1], [{}, 1]]))
    n: Any = draw(st.sampled_from([1, 500, 2**53, "x"]))
    return [2, n, names, rows, *options]


@given(frame=uniform_frames(), cut=st.integers(0, 3), more=st.binary(max_size=2))
def test_uniform_rows_are_read_as_all_others(frame: list[Any], cut: int, more: bytes) -> None:
    data = cbor2.dumps(frame)
    data = data[: len(data) - cut] + more
    with pytest.MonkeyPatch.context() as patch:
        found = outcome(data)
        patch.setattr(frames, "_ROWS_HEADS", ())
        assert found == outcome(data)


def outcome(data: bytes) -> Any:
    """What a frame becomes, exact in type; None if it is refused."""
    try:
        found = decode_frame(data, text=False)
    except Malformed:
        return None
    assert isinstance(found, States)
    assert isinstance(found.body, Columns)
    columns = [
        column.tolist() if isinstance(column, np.ndarray) else list(column) for column in found.body.columns
    ]
    return repr((found.n, found.device, found.backlog, found.body.names, found.body.times.tolist(), columns))


def test_rows_of_numbers_of_a_fixed_width_are_uniform() -> None:
    rows = [[T + at, 0.5 + at, 300 + at, 70_000 + at] for at in range(300)]
    data = cbor2.dumps([2, 70_000, ["a", "b" * 40, "é"], rows])
    found = uniform_rows(data)
    assert found is not None
    assert (found.n, found.names, found.end) == (70_000, ["a", "b" * 40, "é"], len(data))
    assert [list(row) for row in zip(*(column.tolist() for column in found.columns), strict=True)] == rows


COLUMNS = [3, 1, T, [0, 1], {"a": [1, 2]}]


@pytest.mark.parametrize(
    ("frame", "told"),
    [
        ({}, "an array that begins with its kind"),
        ([], "an array that begins with its kind"),
        ([5], "an array that begins with its kind"),
        ([True], "an array that begins with its kind"),
        ([0], "hello"),
        ([0, {"session": -1}], "session must be a number"),
        ([0, {"session": 1, "token": 1}], "token must be text"),
        ([0, {"session": 1, "nearest": 1}], "nearest must be true or false"),
        ([0, {"session": 1, "who": 1}], "'who' is not known"),
        ([1, 0, None, {"a": 1}], "n: must be"),
        ([1, True, None, {"a": 1}], "n: must be"),
        ([1, 2**53, None, {"a": 1}], "n: must be"),
        ([1, 1, -1, {"a": 1}], "time: must be"),
        ([1, 1, 1.5, {"a": 1}], "time: must be"),
        ([1, 1, None, {}], "names: must be 1 to 256"),
        ([1, 1, None, [1]], "a map of name to value"),
        ([1, 1, None, {"a": [1]}], "'a': a value is"),
        ([1, 1, None, {"a": 1}, {"meta": 1}, 3], "this kind of frame is"),
        ([1, 1, None, {"a": 1}, {"backlog": 1}], "backlog must be true or false"),
        ([1, 1, None, {"a": 1}, {"flowVersion": ""}], "flowVersion must be a text"),
        ([1, 1, None, {"a": 1}, {"device": "x"}], "24 hexadecimal digits"),
        ([1, 1, None, {"a": 1}, {"device": DEVICE[:23] + " "}], "24 hexadecimal digits"),
        ([2, 1, ["a"], [[T, 1]], {"meta": 1}], "'meta' is not known"),
        ([2, 1, "a", [[T, 1]]], "names: must be an array"),
        ([2, 1, ["a", "a"], [[T, 1, 2]]], "appears twice"),
        ([2, 1, ["a"], []], "at least one row"),
        ([2, 1, ["a"], [[T, 1], [T]]], "rows[1]"),
        ([2, 1, ["a"], [[T, 1], T]], "rows[1]"),
        ([2, 1, ["a"], [[None, 1]]], "state 0 has a NoneType"),
        ([2, 1, ["a"], [[T, 1], [-1, 1]]], "the time of state 1"),
        ([2, 1, ["a"], [[T, 1], [T, {}]]], "'a', state 1: a value is"),
        ([3, 1, None, [0, 1], {"a": [1, 2]}], "time: must be"),
        ([3, 1, T, [], {"a": []}], "at least one state"),
        ([3, 1, T, [0, 2**63], {"a": [1, 2]}], "deltas"),
        ([3, 1, T, [0, 2**60], {"a": [1, 2]}], "the time of state 1"),
        ([3, 1, 5, [0, -6], {"a": [1, 2]}], "the time of state 1"),
        ([3, 1, T, [0, 1], {"a": [1]}], "has 1 values for 2 states"),
        ([3, 1, T, [0, 1], {"a": 1}], "'a': must be an array of values"),
        ([3, 1, T, [0, 1], [1, 2]], "a map of name to column"),
        ([4], "a received command"),
        ([4, "1"], "the id of a received command"),
        ([4, 1, "d"], "24 hexadecimal digits"),
    ],
)
def test_a_wrong_frame_is_refused_with_what_is_wrong(frame: Any, told: str) -> None:
    for data, text in [(cbor2.dumps(frame), False), (msgspec.json.encode(frame), True)]:
        with pytest.raises(Malformed) as refusal:
            decode_frame(data, text=text)
        assert told in str(refusal.value)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (cbor2.CBORTag(84, b"1234"), "tag 84 is not a typed array"),
        (cbor2.CBORTag(86, b"1234567"), "has 8 bytes a number"),
        (cbor2.CBORTag(86, "12345678"), "has 8 bytes a number"),
        (tagged(86, "<f8", 1.0), "has 1 values for 2 states"),
    ],
)
def test_a_wrong_typed_array_is_refused(value: Any, told: str) -> None:
    with pytest.raises(Malformed, match=told):
        decode_frame(cbor2.dumps([3, 1, T, [0, 1], {"a": value}]), text=False)
    with pytest.raises(Malformed, match=r"typed array|deltas"):
        decode_frame(cbor2.dumps([3, 1, T, tagged(86, "<f8", 1.0), {"a": [1]}]), text=False)
    with pytest.raises(Malformed, match="deltas"):
        decode_frame(cbor2.dumps([3, 1, T, tagged(71, "<u8", 2**63), {"a": [1]}]), text=False)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"\x82\x04\x62c1\x00",  # more bytes after the frame
        b"\x81" * 100_000,
        bytes.fromhex("d81c81d81d00"),  # a shared value inside itself
        bytes.fromhex("8201c11a00000000"),  # a date
        bytes.fromhex("8200a26773657373696f6e016773657373696f6e02"),  # a name twice
        bytes.fromhex("8200a1820102f7"),
        b"\x9b" + b"\xff" * 8,
        b"\x82\x04\xc2\x5a\x00\x01\x00\x00" + b"\xff" * 65536,  # a number of 65,536 bytes
    ],
)
def test_what_no_frame_may_have_is_refused(data: bytes) -> None:
    with pytest.raises(Malformed):
        decode_frame(data, text=False)


@pytest.mark.parametrize(
    "data", [b"", b"[0", b"[" * 100_000, b"\xff", b'[4,"\xc3"]', b'[1,1,null,{"a":1e999}]']
)
def test_what_is_no_json_is_refused(data: bytes) -> None:
    with pytest.raises(Malformed):
        decode_frame(data, text=True)


def test_half_of_a_surrogate_pair_is_named() -> None:
    with pytest.raises(
        Malformed, match=r"not valid JSON: a text in it has half of a surrogate pair \(byte 16\)$"
    ):
        decode_frame(rb'[1,1,null,{"a":"\ud800"}]', text=True)


VALID = [
    [0, {"session": 5, "token": "abc"}],
    [1, 3, T, {"a": 1.5, "b": "x"}, {"meta": {"x": [1, {"y": None}]}, "flowVersion": "v", "device": DEVICE}],
    [2, 4, ["a", "b"], [[T, 1, "x"], [T + 1, None, "y"]], {"backlog": True}],
    [3, 5, T, tagged(70, "<u4", 0, 1), {"a": tagged(86, "<f8", 1, 2), "b": ["x", None]}],
    [4, "c1", DEVICE],
    [2, 70_000, ["a", "b", "é"], [[T + at, 0.5 + at, 300 + at, 70_000 + at] for at in range(12)], {}],
]


def mutated(data: bytes, random: random.Random) -> bytes:
    """The bytes with some of them changed, removed, repeated or taken from elsewhere."""
    raw = bytearray(data)
    for _ in range(random.randint(1, 4)):
        at, size = random.randrange(len(raw) + 1), random.randint(0, 4)
        match random.randrange(4):
            case 0:
                raw[at : at + 1] = bytes([random.randrange(256)])
            case 1:
                del raw[at : at + size]
            case 2:
                raw[at:at] = random.randbytes(size)
            case _:
                begin = random.randrange(len(raw) + 1)
                raw[at:at] = raw[begin : begin + size]
    return bytes(raw)


def decoded_or_refused(data: bytes, *, text: bool) -> None:
    try:
        found = decode_frame(data, text=text)
    except Malformed:
        return
    assert isinstance(found, Hello | States | Received)
    if isinstance(found, States):
        assert len(plain(found)) == found.count


@pytest.mark.parametrize("count", [3000, pytest.param(100_000, marks=pytest.mark.load)])
def test_changed_frames_are_decoded_or_refused(count: int) -> None:
    chance = random.Random(count)
    for _ in range(count):
        frame = chance.choice(VALID)
        decoded_or_refused(mutated(cbor2.dumps(frame), chance), text=False)
        as_json = msgspec.json.encode(chance.choice(VALID[:3]))
        decoded_or_refused(mutated(as_json, chance), text=True)


leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=3)
    | st.binary(max_size=9)
    | st.builds(cbor2.CBORTag, st.sampled_from([64, 70, 79, 86, 90]), st.binary(max_size=16))
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=12,
)


@given(kind=st.integers(0, 5), parts=st.lists(values, max_size=6))
def test_any_values_are_decoded_or_refused(kind: int, parts: list[Any]) -> None:
    decoded_or_refused(cbor2.dumps([kind, *parts]), text=False)


@given(data=st.binary(max_size=60))
def test_any_bytes_are_decoded_or_refused(data: bytes) -> None:
    decoded_or_refused(data, text=False)
    decoded_or_refused(data, text=True)
