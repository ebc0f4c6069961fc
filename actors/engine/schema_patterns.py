"""The regular expressions of JSON schemas.

Most are those of RE2, whose time is linear, and are searched for where the value is checked. RE2 has no lookaround and
no backreferences, as the usual rule for passwords needs them. Such a pattern is one of JavaScript, which may try
without end; so it is searched for in a child process of scripts, which has a deadline and is charged to the owner.

A check does not wait: it assumes that a text matches, and notes what it would have to know. Then the process is asked
for all of that at once, and the check is made again with the answers.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, Final

import re2

from trunkline.actors.engine.json_schema import Asked, Check, Compiler, SchemaError

PATTERN_CHARS_MAX: Final = 1_024
PATTERNS_MAX: Final = 100
"""Regular expressions in a schema: compiling one takes about a millisecond."""
PATTERN_BYTES_MAX: Final = 262_144
"""Memory of one compiled regular expression."""
PATTERN_WORK_A_STEP: Final = 512
"""Characters, multiplied by the size of the compiled regular expression, that are searched for one step."""

_OF_JAVASCRIPT: Final = re.compile(r"\(\?<?[=!]|\\[1-9]|\\k<")
"""What RE2 does not have, and JavaScript has."""

_SCRIPT: Final = """
const answers = [];
for (const [pattern, texts] of payload) {
  let compiled;
  try { compiled = new RegExp(pattern); } catch (error) { return {wrong: pattern, reason: error.message}; }
  answers.push(texts.map((text) => compiled.test(text)));
}
return {answers};
"""

Matches = Callable[[Check, str], bool]
"""Whether a text has a match of a regular expression."""


def compiled_pattern(compiler: Compiler, text: Any, name: str) -> Matches:
    """Compile a regular expression once for a schema. Raises `SchemaError`."""
    if not isinstance(text, str) or len(text) > PATTERN_CHARS_MAX:
        raise SchemaError(f"{name} is not a text of at most {PATTERN_CHARS_MAX} characters.")
    known: Matches | None = compiler.patterns.get(text)
    if known is not None:
        return known
    if len(compiler.patterns) >= PATTERNS_MAX:
        raise SchemaError(f"the schema has more than {PATTERNS_MAX} regular expressions.")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = PATTERN_BYTES_MAX
    try:
        compiled = re2.compile(text, options)
    except (re2.error, UnicodeEncodeError) as error:
        if _OF_JAVASCRIPT.search(text):
            compiler.patterns[text] = found = _asking(text)
            return found
        reason = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else error
        raise SchemaError(f"{name} {text!r} is not a valid regular expression: {reason}.") from None
    search, size = compiled.search, compiled.programsize

    def matches(check: Check, subject: str) -> bool:
        check.spend(1 + len(subject) * size // PATTERN_WORK_A_STEP)
        try:
            return search(subject) is not None
        except UnicodeEncodeError:
            return search(subject.encode("utf-8", "replace").decode()) is not None

    compiler.patterns[text] = matches
    return matches


def _asking(pattern: str) -> Matches:
    return lambda check, subject: check.ask(pattern, subject)


async def answered(
    asked: Asked, call_script: Callable[[str, Any], Awaitable[Any]]
) -> dict[tuple[str, str], bool]:
    """What a process of scripts says of texts: whether each matches its pattern.

    Raises `SchemaError` for a pattern that JavaScript does not know either, `ScriptError` if it takes too long.
    """
    by_pattern: dict[str, list[str]] = {}
    for pattern, text in asked:
        by_pattern.setdefault(pattern, []).append(text)
    found = (await call_script(_SCRIPT, [*by_pattern.items()])).value
    if "wrong" in found:
        raise SchemaError(
            f"the pattern {found['wrong']!r} is not a valid regular expression: {found['reason']}."
        )
    return {
        (pattern, text): bool(is_match)
        for (pattern, texts), matches in zip(by_pattern.items(), found["answers"], strict=True)
        for text, is_match in zip(texts, matches, strict=True)
    }
