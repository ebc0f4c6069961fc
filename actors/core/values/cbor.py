"""CBOR for those that speak it to clients, the device link and MQTT: `http` does not import the store."""

from __future__ import annotations

from trunkline.store.codec import DecodeError, Tag, encode, loads

__all__ = ["DecodeError", "Tag", "encode", "loads"]
