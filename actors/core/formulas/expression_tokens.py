"""The tokens of an expression, with their positions, and what a literal text stands for."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from trunkline.actors.core.formulas.errors import FormulaError
from trunkline.actors.core.formulas.price import spend


class Token(NamedTuple):
    """A piece of an expression. Positions count from 1."""

    kind: str
    text: str
    position: int

    def error(self, problem: str) -> FormulaError:
        return FormulaError(f"Expression, position {self.position}: {problem}.")


END: Final = "end"
TOKEN_STEPS: Final = 2
"""What a token costs to read and to compile."""
# What a number has taken it does not give back: to look for a shorter one would take the square of its length.
_TOKEN: Final = re.compile(
    r"""[\s\ufeff]*(?:
    (?P<number>(?>0[xX][0-9a-fA-F]+|(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?)(?![\w$.]))
    |(?P<name>[A-Za-z_$][A-Za-z0-9_$]*)
    |(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<variable>\{\{\{?(?:\[[^\]]*\]|"[^"]*"|'[^']*'|[^\[\]"'{}]|\}(?!\}))*\}\}\}?)
    |(?P<operator>===|!==|==|!=|>=|<=|>>|<<|&&|\|\||[-+*/%^<>!(),])
    |(?P<end>\Z)
    )""",
    re.VERBOSE | re.DOTALL,
)
_HINTS: Final = {
    "=": "compare by == or ===",
    "&": "'and' is &&",
    "|": "'or' is ||",
    "?": "there is no conditional operator",
    "{": "braces do not form {{a variable}}",
    "'": "the text is not closed",
    '"': "the text is not closed",
}


def tokens_of(text: str) -> list[Token]:
    """Read the tokens, and charge the work at hand for what it takes to compile them, too. Raises `FormulaError`."""
    tokens: list[Token] = []
    at = 0
    while not tokens or tokens[-1].kind != END:
        found = _TOKEN.match(text, at)
        if found is None or found.lastgroup is None:
            at += len(text[at:]) - len(text[at:].lstrip())
            hint = _HINTS.get(text[at])
            raise Token("", "", at + 1).error(f"unexpected {text[at]!r}" + (f"; {hint}" if hint else ""))
        spend(TOKEN_STEPS)
        kind = found.lastgroup
        tokens.append(Token(kind, found[kind], found.start(kind) + 1))
        at = found.end()
    return tokens


_ESCAPE: Final = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,6})\}|(.))", re.DOTALL
)
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": ""}


def text_literal(token: Token) -> str:
    def character(escape: re.Match[str]) -> str:
        code = escape[1] or escape[2] or escape[3]
        if code is None:
            if escape[4] in "xu":
                raise token.error(f"the escape {escape[0]} is not complete")
            return _ESCAPED.get(escape[4], escape[4])
        if int(code, 16) > 0x10FFFF:
            raise token.error(f"the escape {escape[0]} is not a character")
        return chr(int(code, 16))

    text = _ESCAPE.sub(character, token.text[1:-1])
    # Two escapes may be the halves of one character. A half alone cannot be stored.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
