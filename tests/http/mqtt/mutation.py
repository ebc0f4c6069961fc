"""Streams of packets with a few bytes changed, for the tests that look for what the reader does not expect."""

from __future__ import annotations

from random import Random

INTERESTING = (0x00, 0x01, 0x02, 0x03, 0x7F, 0x80, 0xFF)


def mutated(stream: bytes, random: Random) -> bytes:
    """The stream with one to four changes; often the length of its first packet is right nevertheless."""
    changed = bytearray(stream)
    for _ in range(random.randint(1, 4)):
        place = random.randrange(len(changed))
        kind = random.randrange(8)
        if kind < 4:
            changed[place] = random.choice(INTERESTING)
        elif kind < 6:
            changed[place] ^= 1 << random.randrange(8)
        elif kind == 6 and len(changed) > 2:
            del changed[place]
        else:
            changed.insert(place, random.randrange(256))
    if random.random() < 0.7 and 2 <= len(changed) < 130:
        changed[1] = len(changed) - 2
    return bytes(changed)
