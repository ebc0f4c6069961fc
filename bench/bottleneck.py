"""Whether a stage measured the server or the load generator.

A generator that is the bottleneck reports its own speed as the server's, which is the most common error of load
tests. Its figures are then not reported at all, but the reason is.
"""

from __future__ import annotations

from trunkline.bench.result import Stage

BUSY_SHARE = 0.9
"""Share of a core: a generator above it may limit the rate ..."""

SERVER_BUSY_SHARE = 0.8
"""... unless the server uses this much of one as well."""

CEILING_SHARE = 0.8
"""Share of the rate against a null server: above it the generator is measured, not the server."""


def generator_problem(stage: Stage) -> str | None:
    """The reason why a stage measured the load generator and not the server, or None."""
    server_idle = stage.server_cpu is None or stage.server_cpu < SERVER_BUSY_SHARE
    if stage.generator_cpu > BUSY_SHARE and server_idle:
        server = "an unknown share" if stage.server_cpu is None else f"{stage.server_cpu:.0%}"
        return (
            f"The load generator used {stage.generator_cpu:.0%} of a core and the server {server}: "
            "the generator was the bottleneck."
        )
    answered = sum(one.answered for one in stage.calls) / stage.elapsed_s
    if stage.null_rate is not None and answered > CEILING_SHARE * stage.null_rate:
        return (
            f"{answered:,.0f} calls a second are {answered / stage.null_rate:.0%} of what the generator reaches "
            f"against a server that does nothing ({stage.null_rate:,.0f}): the generator was the bottleneck."
        )
    return None
