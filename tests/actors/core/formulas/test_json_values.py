"""Decoding JSON in pieces gives what decoding it at once gives."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import msgspec
import pytest

from trunkline.actors.core.formulas import json_values
from trunkline.actors.core.formulas.json_values import json_encoded, json_value
from trunkline.actors.core.formulas.price import TakesLong, inline

_TEXTS = ("", "a", 'a"b', "back\\slash", "\\", "[{,}]", "é\u2028", "x" * 1200, '"' * 40)


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_values, "PIECE_CHARS", 8)


def _random_value(random: Random, levels: int) -> Any:
    kind = random.randrange(8 if levels else 6)
    if kind < 2:
        return random.choice((None, True, False, 0, -1.5, 12345678901234567890, 1e300))
    if kind < 6:
        return random.choice(_TEXTS)
    many = range(random.randrange(7))
    if kind == 6:
        return [_random_value(random, levels - 1) for _ in many]
    return {random.choice(_TEXTS) + str(at): _random_value(random, levels - 1) for at in many}


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("seed", range(300))
def test_values_are_those_of_the_decoder(seed: int) -> None:
    random = Random(seed)
    value = [_random_value(random, 5) for _ in range(5)]
    text = json.dumps(value, indent=random.choice((None, 1)), ensure_ascii=random.random() < 0.5)
    assert json_value(text) == json_value(text.encode()) == msgspec.json.decode(text)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("seed", range(600))
def test_what_is_no_json_is_refused_as_by_the_decoder(seed: int) -> None:
    random = Random(seed)
    text = json.dumps([_random_value(random, 4) for _ in range(8)], indent=random.choice((None, 1)))
    at = random.randrange(len(text))
    broken = (
        text[:at] + random.choice(("", ",", "[", "}", ":", '"', "1", "]", "{}", "  " * 20)) + text[at + 1 :]
    )
    try:
        expected = msgspec.json.decode(broken)
    except msgspec.DecodeError:
        with pytest.raises(msgspec.DecodeError):
            json_value(broken)
    else:
        assert json_value(broken) == expected


def _short_and_long(random: Random, levels: int) -> Any:
    """Many short containers, which are passed over together, and some around others."""
    kind = random.randrange(10 if levels else 7)
    if kind < 4:
        return {f"k{at}": random.choice((at, "a", None)) for at in range(random.randrange(10))}
    if kind < 7:
        return [random.choice((at, "ab", 1.5)) for at in range(random.randrange(30))]
    return [_short_and_long(random, levels - 1) for _ in range(random.randrange(12))]


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("seed", range(60))
def test_short_containers_are_those_of_the_decoder_or_refused_as_by_it(seed: int) -> None:
    random = Random(seed)
    text = json.dumps([_short_and_long(random, 4) for _ in range(20)], separators=(",", ":"))
    assert json_value(text) == msgspec.json.decode(text)
    for _ in range(5):
        at = random.randrange(len(text))
        broken = text[:at] + random.choice(("", ",", "[", "}", ":", '"', "]", "{}", "[1]")) + text[at + 1 :]
        try:
            expected = msgspec.json.decode(broken)
        except msgspec.DecodeError:
            with pytest.raises(msgspec.DecodeError):
                json_value(broken)
        else:
            assert json_value(broken) == expected


@pytest.mark.parametrize("item", ['{"key":0,"v":1}', "[1,2]", '{"key":"a text","other":[]}'])
def test_short_containers_are_looked_at_together(item: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step is some work, so fewer steps are fewer looks. The rest of the text costs what it costs."""
    spent: list[int] = []
    monkeypatch.setattr(json_values, "spend", spent.append)
    text = f"[{','.join([item] * 20_000)}]"
    assert json_value(text) == [json.loads(item)] * 20_000
    assert sum(spent) < len(text) // 6


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize(
    "text",
    [
        "[1,2,3,4,5,6,7,8,9,10,]" + " " * 40,
        "[" + " " * 40 + ",1]",
        '{"a":[1,2,3,4,5,6,7,8,9,0] [1], "b":1}' + " " * 40,
        '{"a" [1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8]}',
        "{1:[1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8]}" + " " * 40,
        "[1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8}" + " " * 40,
        "[[1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8]",
        "[1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8] 1" + " " * 40,
        "1,2" + " " * 40,
        '"' + "a" * 40,
    ],
)
def test_malformed_places_between_pieces(text: str) -> None:
    with pytest.raises(msgspec.DecodeError):
        json_value(text)


def test_a_long_text_is_decoded_by_pieces_of_the_real_size() -> None:
    value = {f"key{at}": [at, {"text": "x" * (at % 50)}] for at in range(20_000)}
    assert json_value(json.dumps(value)) == value


@pytest.mark.usefixtures("small_pieces")
def test_what_nests_too_deeply_is_refused() -> None:
    with pytest.raises(RecursionError):
        json_value("[1,2,3,4,5," * 2_000 + "1" + "]" * 2_000)


@pytest.mark.parametrize("seed", range(100))
def test_texts_are_those_of_the_encoder(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_values, "SHORT_ITEMS", 16)
    random = Random(seed)
    value = [_random_value(random, 5) for _ in range(5)]
    assert json_encoded(value) == msgspec.json.encode(value)


def test_what_nests_too_deeply_is_not_encoded() -> None:
    value: list[Any] = []
    for _ in range(20_000):
        value = [value, 1]
    with pytest.raises(RecursionError):
        json_encoded(value)


@pytest.mark.parametrize("text", ["plain ", '\x01\n"\\', "\u00e4\U0001f600"])
def test_long_texts_are_encoded_in_pieces_and_charged(text: str) -> None:
    long = text * 200_000
    assert json_encoded({long: [long]}) == msgspec.json.encode({long: [long]})
    with pytest.raises(TakesLong):
        inline(json_encoded, long)
