"""The value of a JSON text of any length, and the text of a value, made in pieces: no call of C takes long.

A thread that decodes a long text at once would keep the event loop waiting until it is done, because such a call does
not share the interpreter. So commas and brackets are looked for here, and what stands between two commas some thousand
characters apart is decoded together. A container that is longer than a piece gets its items piece by piece.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Any, Final

import msgspec

from trunkline.actors.core.formulas.price import CHARACTERS_A_STEP, spend

PIECE_CHARS: Final = 16_384
"""Characters that are decoded or encoded at once."""
DECODED_A_STEP: Final = 64
"""Characters of a text for a step."""
NESTING_MAX: Final = 900
"""Levels of arrays and objects; deeper ones are a `RecursionError`, as of the decoder."""

_PLAIN: Final = r'[^"\\{}\[\]]{0,64}+'
_FLAT: Final = rf'[{{\[](?:{_PLAIN}"[^"\\]{{0,64}}+"){{0,8}}+{_PLAIN}[}}\]]'
_MARK: Final = re.compile(rf'{_FLAT}(?:,{_FLAT}){{0,7}}+|"(?:[^"\\]{{0,1000}}")?|[\[\]{{}},]')
"""Some short containers with nothing but short texts and numbers in them, of which most long texts consist; a bracket,
a comma, a short text, or the quote before a longer one. Where there is no such container, its start is looked at three
times at most, because nothing in the pattern is tried at two lengths."""
_CLOSING: Final = {"[": "]", "{": "}"}
_MARKS_CHARGED: Final = 64
_CHARS_OF_MARK: Final = 64
"""Short containers count as marks by their length."""
_SEARCHED_CHARS: Final = 65_536
"""Characters in which a mark is looked for at once. A text that is cut there counts as a longer one."""


def json_value(text: str | bytes) -> Any:
    """Decode it. Raises `msgspec.DecodeError`, and `RecursionError` for what nests too deeply."""
    if len(text) <= 4 * PIECE_CHARS:
        spend(len(text) // DECODED_A_STEP)
        return msgspec.json.decode(text)
    spend(len(text) // DECODED_A_STEP)
    if isinstance(text, bytes):
        try:
            text = text.decode()
        except UnicodeDecodeError as error:
            raise msgspec.DecodeError(str(error)) from None
    return _Reader(text).value()


class _Open:
    """An array or an object that is not closed yet."""

    __slots__ = ("after", "bracket", "item", "made", "opened", "start", "waits")

    def __init__(self, bracket: str, at: int) -> None:
        self.bracket = bracket
        self.opened = at - 1
        self.start = at
        """Where the items begin that are not decoded yet."""
        self.item = at
        """Where the current item begins."""
        self.made: Any = None
        """The container, once some of its items are decoded."""
        self.waits = False
        """Whether a long item has just ended, after which only a comma or the end may come."""
        self.after = at


class _Reader:
    """One pass through a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._stack: list[_Open] = []

    def value(self) -> Any:
        text, stack = self._text, self._stack
        find, at, marks = self._mark, 0, 0
        while (mark := find(at)) is not None:
            at, found = mark.end(), mark[0]
            marks += 1 + len(found) // _CHARS_OF_MARK
            if marks >= _MARKS_CHARGED:
                spend(_MARKS_CHARGED // 2)
                marks = 0
            if found[0] == '"':
                if found == '"':
                    at = self._end_of_text(at)
                if not stack:
                    break
            elif found == ",":
                if not stack:
                    raise _malformed()
                self._comma(stack[-1], at - 1)
            elif found[0] in _CLOSING:
                self._check_opening(mark.start())
                if len(found) == 1:
                    stack.append(_Open(found, at))
                elif not stack:
                    break
            else:
                if not stack or _CLOSING[stack[-1].bracket] != found:
                    raise _malformed()
                if len(stack) == 1:
                    return self._last(stack[0], at - 1)
                self._close(at - 1)
        return msgspec.json.decode(text)  # one number or one text, or nothing that is JSON

    def _check_opening(self, at: int) -> None:
        """Whether an array or an object may begin here."""
        stack = self._stack
        if (stack and stack[-1].waits) or (not stack and self._text[:at].strip()):
            raise _malformed()
        if len(stack) >= NESTING_MAX:
            raise RecursionError

    def _mark(self, at: int) -> re.Match[str] | None:
        """The next mark. It is looked for in pieces, as there may be none for long."""
        text, find = self._text, _MARK.search
        while (mark := find(text, at, at + _SEARCHED_CHARS)) is None:
            at += _SEARCHED_CHARS
            if at >= len(text):
                return None
            spend(_SEARCHED_CHARS // CHARACTERS_A_STEP)
        return mark

    def _end_of_text(self, at: int) -> int:
        """Where a long text ends."""
        text = self._text
        while (end := text.find('"', at)) >= 0:
            backslashes = 0
            while text[end - 1 - backslashes] == "\\":
                backslashes += 1
            if not backslashes % 2:
                return end + 1
            at = end + 1
        raise _malformed()

    def _comma(self, top: _Open, at: int) -> None:
        if top.waits:
            self._check_gap(top, at)
        elif at - top.start > PIECE_CHARS:
            self._open_all()
            self._decode(top, at)
        else:
            top.item = at + 1
            return
        top.start = top.item = at + 1

    def _close(self, at: int) -> None:
        """The end of a container within another."""
        top = self._stack.pop()
        if top.made is None:
            return  # it is decoded with the one around it
        self._end(top, at)
        around = self._stack[-1]
        before = self._text[around.item : top.opened].strip()
        if around.bracket == "[":
            if before:
                raise _malformed()
            around.made.append(top.made)
        else:
            around.made[_key(before)] = top.made
        around.waits, around.after = True, at + 1

    def _last(self, top: _Open, at: int) -> Any:
        if self._text[at + 1 :].strip():
            raise _malformed()
        if top.made is None:
            return msgspec.json.decode(self._text)
        self._end(top, at)
        return top.made

    def _end(self, top: _Open, at: int) -> None:
        if top.waits:
            self._check_gap(top, at)
        else:
            self._decode(top, at)

    def _check_gap(self, top: _Open, at: int) -> None:
        if self._text[top.after : at].strip():
            raise _malformed()
        top.waits = False

    def _open_all(self) -> None:
        """Make the containers around what is to be decoded, with the items before it."""
        for depth, each in enumerate(self._stack):
            if each.made is None:
                each.made = [] if each.bracket == "[" else {}
            if depth + 1 < len(self._stack) and each.item > each.start:
                self._decode(each, each.item - 1)
                each.start = each.item

    def _decode(self, top: _Open, at: int) -> None:
        """Decode whole items, of which there is one at least."""
        found = msgspec.json.decode(top.bracket + self._text[top.start : at] + _CLOSING[top.bracket])
        if not found:
            raise _malformed()
        if top.bracket == "[":
            top.made.extend(found)
        else:
            top.made.update(found)


def _key(before: str) -> str:
    """The key that stands with its colon before a container."""
    if not before.endswith(":"):
        raise _malformed()
    return msgspec.json.decode(before[:-1], type=str)


def values_at_most(text: bytes) -> int:
    """At least as many values as a JSON text has, counted in no time."""
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def count_values(text: bytes) -> int:
    """The values of a JSON text, without what looks like some within texts."""
    plain = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    return values_at_most(b"".join(plain.split(b'"')[::2]))


def _malformed() -> msgspec.DecodeError:
    return msgspec.DecodeError("JSON is malformed")


_ENCODED_A_STEP: Final = 128
"""Characters of a text that are encoded in a step, if all of them are written as escapes."""
SHORT_ITEMS: Final = 512
"""Items, or as many texts of `_TEXT_OF_ITEM` characters, that are encoded at once."""
_TEXT_OF_ITEM: Final = 128


def json_encoded(value: Any) -> bytes:
    """A value as JSON. Raises as the encoder, and `RecursionError` for what nests too deeply."""
    pieces: list[bytes] = []
    _write(value, pieces, 0)
    groups = [b"".join(pieces[at : at + SHORT_ITEMS]) for at in range(0, len(pieces), SHORT_ITEMS)]
    return b"".join(groups)


def is_short(value: Any) -> bool:
    """Whether a value is encoded, decoded or copied in less than a millisecond."""
    left, waiting = SHORT_ITEMS, [value]
    while waiting:
        each = waiting.pop()
        left -= 1
        if isinstance(each, str):
            left -= len(each) // _TEXT_OF_ITEM
        elif isinstance(each, list | dict):
            left -= len(each)
            if left > 0:
                waiting.extend(each.values() if isinstance(each, dict) else each)
        if left < 0:
            return False
    return True


def _write(value: Any, pieces: list[bytes], depth: int) -> None:
    """Write what is short at once, and the items of what is not one after the other."""
    if depth > NESTING_MAX // 3:
        raise RecursionError
    if isinstance(value, str):
        _write_text(value, pieces)
        return
    if is_short(value) or not isinstance(value, list | dict):
        spend(SHORT_ITEMS // 8)
        pieces.append(msgspec.json.encode(value))
        return
    start, end = (b"{", b"}") if isinstance(value, dict) else (b"[", b"]")
    items = iter(value.items() if isinstance(value, dict) else value)
    before = start
    while part := list(islice(items, SHORT_ITEMS // 8)):
        together: Any = dict(part) if isinstance(value, dict) else part
        pieces.append(before)
        before = b","
        if is_short(together):
            spend(SHORT_ITEMS // 8)
            pieces.append(msgspec.json.encode(together)[1:-1])
            continue
        for at, each in enumerate(part):
            if at:
                pieces.append(b",")
            if isinstance(value, dict):
                key, each = each
                _write_text(key, pieces)
                pieces.append(b":")
            _write(each, pieces, depth + 1)
    pieces.append(end)


def _write_text(text: str, pieces: list[bytes]) -> None:
    pieces.append(b'"')
    for start in range(0, len(text), PIECE_CHARS):
        piece = text[start : start + PIECE_CHARS]
        spend(1 + len(piece) // _ENCODED_A_STEP)
        pieces.append(msgspec.json.encode(piece)[1:-1])
    pieces.append(b'"')
