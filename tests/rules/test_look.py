"""The console has one set of sizes, spaces and colours: no style sheet has a value beside the variables of base.css."""

from __future__ import annotations

import re
from itertools import product
from typing import Final

from tests.rules.look import STYLE, declarations, variables
from trunkline.http.site.site import CONSOLE

_SPACE: Final = r"0|auto|-?1px|var\(--space-\d\)|calc\((-1|1\.5|2) \* var\(--space-\d\)\)|10vh"
ALLOWED: Final = {
    r"font-size": r"0|var\(--(font|drawing)-\w+\)",
    r"font": r"inherit|var\(--font-base\)/1\.5 .*",
    r"font-family": r"var\(--mono\)",
    r"font-weight": r"400|600",
    r"line-height": r"1\.25|1\.5",
    r"(row-|column-)?gap|(padding|margin)(-\w+)*": rf"({_SPACE})( ({_SPACE}))*",
    r"border(-\w+)*-radius": r"50%|var\(--radius-\w+\)",
    r"box-shadow": r"none|var\(--shadow(-high)?\)",
}
"""The values that properties may have, as patterns. `10vh` is the place of the log-in."""

COLOUR: Final = re.compile(
    r"#[0-9a-f]{3,8}\b|\b(rgb|hsl|hwb|lab|lch|oklab|oklch|color)a?\(|\b(white|black)\b", re.I
)
WIDTHS: Final = {"40rem", "60rem", "60.01rem", "75rem", "75.01rem"}
"""Where the page changes with the width of the window: a phone, a narrow window, a wide one."""
CONTRAST_MIN: Final = 4.5
TEXT_ON: Final = {
    ("--back", "--surface", "--raised"): ("--text", "--quiet", "--accent", "--good", "--warn", "--bad"),
    ("--accent-soft",): ("--text", "--accent"),
    ("--good-soft",): ("--text", "--good"),
    ("--warn-soft",): ("--text", "--warn"),
    ("--bad-soft",): ("--text", "--bad"),
    ("--accent",): ("--accent-text",),
}
"""The colours of text that stand on each background."""


def test_no_value_is_beside_the_set() -> None:
    wrong = [
        f"{each.file}: {each.rule} {{ {each.property}: {each.value} }}"
        for each in declarations()
        for name, allowed in ALLOWED.items()
        if re.fullmatch(name, each.property)
        and not re.fullmatch(allowed, each.value.removesuffix(" !important"))
    ]
    assert not wrong, "use a variable of base.css: docs/reference/look.md lists them"


def test_no_colour_is_beside_the_set() -> None:
    assert [each for each in declarations() if COLOUR.search(each.value)] == []


def test_the_page_changes_at_the_same_widths_everywhere() -> None:
    found = {
        width
        for file in STYLE.glob("*.css")
        for width in re.findall(r"@media \((?:max|min)-width: ([\w.]+)\)", file.read_text(encoding="utf-8"))
    }
    assert found == WIDTHS


def test_every_variable_is_defined_and_used() -> None:
    defined = {each.name for each in variables()} | {
        each.property for each in declarations() if each.property.startswith("--")
    }
    text = "".join(file.read_text(encoding="utf-8") for file in STYLE.glob("*.css"))
    used = set(re.findall(r"var\((--[\w-]+)\)", text))
    assert used <= defined
    scripts = "".join(
        file.read_text(encoding="utf-8") for file in CONSOLE.rglob("*.js") if "vendor" not in file.parts
    )
    assert {name for name in defined - used if not re.search(rf"\b{_stem(name)}", scripts)} == set()


def _stem(name: str) -> str:
    """What scripts call a variable: `chart-1` is `chart-` and a number there."""
    return re.sub(r"\d+$", "", name.removeprefix("--"))


ICON: Final = re.compile(r"<\$\{Icon(?:Button)?\} (?:name|icon)=(\$\{[^}]+\}|\S+)")
LINK: Final = re.compile(r'\["(\w+)", "[A-Z][\w ]+", (?:link\(|")')
"""A link of the navigation, which has the icon of its section."""


def test_every_icon_is_drawn_and_used() -> None:
    icons = (CONSOLE / "parts" / "icon.js").read_text("utf-8").partition("const MARKS")[0]
    drawn = set(re.findall(r'^(?:  |ICONS\.)(\w+)(?:: "M| =)', icons, re.MULTILINE))
    frame = [(CONSOLE / name).read_text("utf-8") for name in ("main.js", "routes.js")]
    views = [file.read_text("utf-8") for file in (CONSOLE / "views").rglob("*.js")]
    named = {name for given in ICON.findall("".join(frame + views)) for name in re.findall(r'"(\w+)"', given)}
    assert named | set(LINK.findall("".join(frame))) == drawn


def test_text_has_contrast_on_every_background() -> None:
    for theme in ("light", "dark"):
        colours = {each.name: getattr(each, theme) for each in variables() if each.dark}
        poor = {
            (text, back): round(contrast(colours[text], colours[back]), 2)
            for backs, texts in TEXT_ON.items()
            for back, text in product(backs, texts)
            if contrast(colours[text], colours[back]) < CONTRAST_MIN
        }
        assert poor == {}, theme


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, as WCAG 2 defines it."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
