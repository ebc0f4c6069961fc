"""Load tools that speak to a running server over the wire only, as a stranger would.

No module here imports another room: what the tools know of the server is its public HTTP interface. From the
bottom up: ``transport`` to ``session`` are a client for everything that is not measured; ``reactor``, ``line``
and ``load`` make the calls that are; ``stage`` and ``run`` are the run that all ``scenarios`` share; ``result``
is what it found, for ``report`` and ``page``. ``peers`` starts other servers and gives them the same work.
"""
