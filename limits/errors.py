"""The one way in which this room says no by exception.

Owns: what is raised for a wrong setting. Does not own status codes (`http/calls/errors.py`) nor refused throttles:
those are no exceptions but a `Verdict`, because being refused is ordinary and must be cheap. It stands here,
apart from the modules that raise it, so that the modules of this room import each other without a cycle.
"""

from __future__ import annotations


class SettingsError(ValueError):
    """A setting or a limit is unknown or has a wrong value. The text is one sentence for an operator.

    `key` names what is wrong as the operator wrote it (`port`, `limits.send_state`, `TRUNKLINE_PORT`),
    `problem` says what is wrong with it, `remedy` what would be right.
    """

    def __init__(self, key: str, problem: str, remedy: str) -> None:
        super().__init__(f"{key} {problem}; {remedy}")
        self.key = key
        self.problem = problem
        self.remedy = remedy

    def under(self, prefix: str) -> SettingsError:
        """The same error with its key placed under `prefix`, for a table nested in another."""
        return SettingsError(f"{prefix}{self.key}", self.problem, self.remedy)
