"""Load tools that use a running server only through its public HTTP interface.

No module here imports another room. From the bottom up: ``transport`` to ``session`` are a client for calls that
are not measured; ``reactor``, ``load_connection`` and ``load`` make the measured calls; ``stage`` and ``run`` are
the run that all ``scenarios`` share; ``result`` holds its results, for ``report`` and ``page``. ``tests/bench/peers``
gives other servers the same load.
"""
