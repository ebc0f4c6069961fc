"""The addresses that a node sends a mail to: a list of templates, each of which may give several between commas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from trunkline.actors.core.outgoing.mail_head import check_address
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.engine.settings import Config, Setting, TextsSetting
from trunkline.actors.engine.tools import Unusable, item_readers
from trunkline.actors.engine.visit import Visit, refused

ADDRESSES_CHARS_MAX: Final = 16_384
"""Characters of all addresses that one template gives."""


def addresses_reader(
    config: Config, setting: TextsSetting, most: Callable[[Visit], int]
) -> Callable[[Visit], list[str]]:
    """Reads each address once, at most as many as `most` says; if they are needed, at least one."""
    given = config[setting] or []
    if not isinstance(given, list | str) or (setting.is_needed and not given):
        raise Unusable(f"config.{setting}: give a list of addresses, or of templates of them.")
    readers = item_readers(config, setting) if given else []
    least = 1 if setting.is_needed else 0

    def read(visit: Visit) -> list[str]:
        found = list(dict.fromkeys(each for reader in readers for each in _split(setting, reader(visit))))
        if not least <= len(found) <= most(visit):
            raise refused(f"config.{setting}: gives {len(found)} addresses; give {least} to {most(visit)}.")
        for each in found:
            checked(each, setting)
        return found

    return read


def checked(address: str, setting: Setting) -> str:
    """The address if it is one, without a name. Raises `NodeError`."""
    try:
        check_address(address, f"config.{setting}")
    except Invalid as error:
        raise refused(str(error)) from None
    return address


def _split(setting: Setting, text: str) -> list[str]:
    if len(text) > ADDRESSES_CHARS_MAX:
        given = f"gives {len(text)} characters"
        raise refused(f"config.{setting}: {given}; addresses have at most {ADDRESSES_CHARS_MAX} in all.")
    return [each.strip() for each in text.split(",") if each.strip()]
