"""Encoding of values as CBOR. The only module of the server that uses the library.

CBOR keeps bytes, integers of any size and the difference between 1 and 1.0, can still be decoded in ten years
without a schema, and decodes in 0.3 us. Encodings are not canonical: never compare or hash them to find out
whether two values are equal.

The library is written in Rust. Where it finds no memory, it panics, with an exception that is no `Exception` and would
end the process, or says that it cannot decode the value, which would be told as damage. Here both are a MemoryError.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any, Final

import cbor2

Tag = cbor2.CBORTag
"""A value with a tag that the decoder leaves as it is: `tag` and `value`."""

DecodeError = cbor2.CBORDecodeError
"""What `loads` raises for bytes that are not CBOR, or not as its options ask for."""

_PANIC: Final = "PanicException"
"""The name of the exception that a panic of a library in Rust is in Python; it cannot be imported."""
_NO_OBJECT: Final = "PyObject pointer is null"
"""What a panic says where Python could not make an object."""

_SMALL = 24
"""Smaller numbers and lengths are encoded in one byte together with their type (RFC 8949, section 3)."""

_NUMBERS = [bytes([number]) for number in range(_SMALL)]
_MAPS = [bytes([0xA0 + length]) for length in range(_SMALL)]
# A key, the initial byte of its value, and the value.
_BYTE = struct.Struct(">BBB").pack
_SHORT = struct.Struct(">BBH").pack
_LONG = struct.Struct(">BBI").pack
_FLOAT = struct.Struct(">BBd").pack


def encode(obj: Any) -> bytes:
    """Return the CBOR bytes of plain data: None, booleans, numbers, text, bytes, lists and maps."""
    try:
        return cbor2.dumps(obj)
    except BaseException as error:
        _tell_of_memory(error)
        raise


def encode_numbered(values: Mapping[int, Any]) -> bytes:
    """Return the same bytes as `encode` for a map whose keys are numbers, in half the time for plain numbers.

    For the points of devices: one is encoded for each report.
    """
    if len(values) >= _SMALL:
        return encode(values)
    raw = _MAPS[len(values)]
    for number, value in values.items():
        kind = type(value)
        if not 0 <= number < _SMALL:
            raw += encode(number) + encode(value)
        elif kind is float and value - value == 0.0:  # cbor2 encodes infinities and NaN in shorter forms
            raw += _FLOAT(number, 0xFB, value)
        elif kind is int and 0 <= value <= 0xFFFFFFFF:
            if value < _SMALL:
                raw += _NUMBERS[number] + _NUMBERS[value]
            elif value <= 0xFF:
                raw += _BYTE(number, 0x18, value)
            elif value <= 0xFFFF:
                raw += _SHORT(number, 0x19, value)
            else:
                raw += _LONG(number, 0x1A, value)
        elif kind is bool:
            raw += _NUMBERS[number] + (b"\xf5" if value else b"\xf4")
        else:
            raw += _NUMBERS[number] + encode(value)
    return raw


def encode_with(values: Mapping[str, Any], name: str, encoded: bytes) -> bytes:
    """Return the bytes of a small map in which `name` has a value that is encoded already; it stands at the end."""
    others = {key: value for key, value in values.items() if key != name}
    if len(others) + 1 >= _SMALL:
        raise ValueError(f"the map has {len(others) + 1} names, not fewer than {_SMALL}")
    return _MAPS[len(others) + 1] + encode(others)[1:] + encode(name) + encoded


def decode(raw: bytes) -> Any:
    """Return the value that was encoded. Raises ValueError if `raw` is not valid CBOR."""
    try:
        return cbor2.loads(raw)
    except DecodeError as error:
        _tell_of_memory(error)
        raise ValueError(f"not valid CBOR: {error}") from error
    except BaseException as error:
        _tell_of_memory(error)
        raise


def loads(raw: bytes, **options: Any) -> Any:
    """Return the value that was encoded, as `cbor2.loads` with these options. Raises DecodeError, MemoryError."""
    try:
        return cbor2.loads(raw, **options)
    except BaseException as error:
        _tell_of_memory(error)
        raise


def _tell_of_memory(error: BaseException) -> None:
    """Raise MemoryError in place of an error of the library that a lack of memory is the cause of.

    And RuntimeError in place of another panic.
    """
    for found in (error, error.__cause__):
        is_panic = type(found).__name__ == _PANIC
        if isinstance(found, MemoryError) or (is_panic and _NO_OBJECT in str(found)):
            raise MemoryError(f"for CBOR: {error}") from error
        if is_panic:
            raise RuntimeError(f"the library of CBOR panicked: {found}") from error


def decode_in_parts(raw: bytes, look: Callable[[], None]) -> Any:
    """Return the same as `decode`. The two outer levels of lists and maps are decoded item by item.

    `look` is called after each item. So other threads work meanwhile, and `look` may raise to end it.
    """
    file = BytesIO(raw)
    try:
        return _parts(file, cbor2.CBORDecoder(file), look, _LEVELS)
    except (DecodeError, IndexError) as error:
        _tell_of_memory(error)
        raise ValueError(f"not valid CBOR: {error}") from error
    except BaseException as error:
        _tell_of_memory(error)
        raise


_LIST, _MAP = 4, 5
_LEVELS = 2


def _parts(file: BytesIO, decoder: cbor2.CBORDecoder, look: Callable[[], None], levels: int) -> Any:
    start = file.tell()
    initial = file.read(1)[0]
    kind, length = initial >> 5, initial & 31
    if not levels or kind not in (_LIST, _MAP) or length > _SMALL + 3:
        file.seek(start)
        value = decoder.decode()
        look()
        return value
    if length >= _SMALL:
        length = int.from_bytes(file.read(1 << length - _SMALL), "big")
    if kind == _LIST:
        return [_parts(file, decoder, look, levels - 1) for _ in range(length)]
    return {decoder.decode(): _parts(file, decoder, look, levels - 1) for _ in range(length)}
