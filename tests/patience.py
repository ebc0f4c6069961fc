"""How long a test waits for what has to come.

Long enough for a machine that is busy with other work: a test ends as soon as it has what it waits for, so
only one that fails is slow. It is below the time-out of a whole test (`timeout` in pyproject.toml), so that
the failure names the place that waited.
"""

from __future__ import annotations

from typing import Final

PATIENCE_S: Final = 150
