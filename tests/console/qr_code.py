"""Reads a QR code of level L from its modules: what the console draws for apps that make codes.

It reads the data as it stands, and corrects nothing: a module that is wrong is a fault of the drawing. The error
correction is checked by its syndromes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

# For each version: codewords of error correction in a block, sizes of the data in the blocks, alignment centres.
_VERSIONS: Final[dict[int, tuple[int, tuple[int, ...], tuple[int, ...]]]] = {
    4: (20, (80,), (6, 26)),
    5: (26, (108,), (6, 30)),
    6: (18, (68, 68), (6, 34)),
    7: (20, (78, 78), (6, 22, 38)),
    8: (24, (97, 97), (6, 24, 42)),
    9: (30, (116, 116), (6, 26, 46)),
    10: (18, (68, 68, 69, 69), (6, 28, 50)),
}
_FORMAT_MASK: Final = 0b101010000010010
_LEVEL_L: Final = 0b01
_BYTES: Final = 0b0100

Modules = Sequence[Sequence[bool]]


def read(modules: Modules) -> str:
    """The text of a QR code of one of these versions, with the mask 0."""
    size = len(modules)
    version = (size - 17) // 4
    correction, sizes, centres = _VERSIONS[version]
    format_bits = sum(modules[row if row < 6 else row + 1][8] << row for row in range(8))
    format_bits |= sum(
        modules[8][7 if at == 8 else 14 - at] << at for at in range(8, 15)
    )  # the last bit is beside the dark column
    assert (format_bits ^ _FORMAT_MASK) >> 10 == _LEVEL_L << 3, "it is not of level L with the mask 0"
    bits = _data_bits(modules, version, centres)
    words = [int("".join(map(str, bits[at : at + 8])), 2) for at in range(0, len(bits) - 7, 8)]
    data: list[list[int]] = [[] for _ in sizes]
    rest = iter(words)
    for at in range(max(sizes)):
        for block, length in zip(data, sizes, strict=True):
            if at < length:
                block.append(next(rest))
    checks: list[list[int]] = [[] for _ in sizes]
    for _ in range(correction):
        for block in checks:
            block.append(next(rest))
    for block, check in zip(data, checks, strict=True):
        assert not any(_syndromes(block + check, correction)), "the error correction does not fit the data"
    stream = "".join(f"{word:08b}" for block in data for word in block)
    assert int(stream[:4], 2) == _BYTES
    length_bits = 8 if version < 10 else 16
    length = int(stream[4 : 4 + length_bits], 2)
    start = 4 + length_bits
    text = bytes(int(stream[start + 8 * at : start + 8 * at + 8], 2) for at in range(length))
    return text.decode()


def _data_bits(modules: Modules, version: int, centres: tuple[int, ...]) -> list[int]:
    """The bits of the data area in their order, without the mask."""
    size = len(modules)
    bits = []
    column, upwards = size - 1, True
    while column > 0:
        if column == 6:
            column = 5
        for row in range(size - 1, -1, -1) if upwards else range(size):
            bits += [
                int(modules[row][each]) ^ int((row + each) % 2 == 0)
                for each in (column, column - 1)
                if not _is_pattern(row, each, size, version, centres)
            ]
        column, upwards = column - 2, not upwards
    return bits


def _is_pattern(row: int, column: int, size: int, version: int, centres: tuple[int, ...]) -> bool:
    """Whether a module belongs to a pattern or to what is told about the code."""
    if (row < 9 and (column < 9 or column >= size - 8)) or (row >= size - 8 and column < 9):
        return True
    if 6 in (row, column):
        return True
    if version >= 7 and ((row < 6 and column >= size - 11) or (column < 6 and row >= size - 11)):
        return True
    corners = {(6, 6), (6, size - 7), (size - 7, 6)}
    return any(
        (y, x) not in corners and abs(row - y) <= 2 and abs(column - x) <= 2 for y in centres for x in centres
    )


def _syndromes(words: Sequence[int], count: int) -> list[int]:
    """The values of a block as a polynomial at the roots of the generator; all 0 if nothing is wrong."""
    found = []
    for power in range(count):
        root = 1
        for _ in range(power):
            root = _product(root, 2)
        value = 0
        for word in words:
            value = _product(value, root) ^ word
        found.append(value)
    return found


def _product(one: int, other: int) -> int:
    value = 0
    while other:
        value ^= one if other & 1 else 0
        one = (one << 1) ^ (0x11D if one & 0x80 else 0)
        other >>= 1
    return value
