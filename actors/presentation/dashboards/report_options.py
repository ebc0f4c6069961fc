"""What a caller asks of a report: checked, and as the job stores it."""

from __future__ import annotations

import zoneinfo

import msgspec
from msgspec import UNSET

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.presentation.dashboards.messages import SendReport


def report_options(body: SendReport, now_ms: int) -> Doc:
    """The options of a report, with their defaults. Raises `Invalid`. Blocks: not for the event loop."""
    time_ms = now_ms if body.time is UNSET else round(body.time)
    if not 0 < time_ms <= now_ms:
        raise Invalid(f"time: {body.time} is not a time up to now, in milliseconds since 1970.")
    timezone = body.timezone or "UTC"
    _check_timezone(timezone)
    locale = body.locale or "en"
    _check_locale(locale)
    given = msgspec.to_builtins(body)
    return {
        "subject": body.subject or None,
        "message": body.message or "",
        "theme": body.theme or None,
        "time": time_ms,
        "timezone": timezone,
        "locale": locale,
        "ctx": given.get("ctx", {}),
    }


def _check_timezone(name: str) -> None:
    try:
        zoneinfo.ZoneInfo(name)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        raise Invalid(f"timezone: {name[:64]!r} is not a time zone such as Europe/Berlin or UTC.") from None


def _check_locale(name: str) -> None:
    from babel import Locale, UnknownLocaleError

    try:
        Locale.parse(name.replace("-", "_"))
    except (ValueError, TypeError, UnknownLocaleError):
        raise Invalid(f"locale: {name!r} is not a locale such as de, en_US or pt-BR.") from None
