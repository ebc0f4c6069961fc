"""The only exception of this package.

Owns the error for a wrong setting. Does not own status codes (`http/calls/errors.py`) nor refused throttles: these
are no exceptions but a `Verdict`, because refusals are ordinary and must be cheap. It has a module of its own so
that the modules that raise it do not import each other in a cycle.
"""

from __future__ import annotations


class SettingsError(ValueError):
    """A setting or a limit is unknown or has a wrong value. The text is one sentence for an operator.

    `key` is the name as the operator wrote it (`port`, `limits.send_state`, `TRUNKLINE_PORT`), `problem` says
    what is wrong, `remedy` what would be right.
    """

    def __init__(self, key: str, problem: str, remedy: str) -> None:
        super().__init__(f"{key} {problem}; {remedy}")
        self.key = key
        self.problem = problem
        self.remedy = remedy

    def under(self, prefix: str) -> SettingsError:
        """The same error with `prefix` before its key, for a nested table."""
        return SettingsError(f"{prefix}{self.key}", self.problem, self.remedy)
