"""The metrics of the machines of a server. With a single machine they have no samples."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from trunkline.actors.core.runtime.machines import Machines


def machine_metrics(machines: Machines) -> Iterator[Metric]:
    """What the machine that serves knows of all of them and of the log: the root tells it for all partitions, and each
    owner what it has appended."""
    up = GaugeMetricFamily(
        "trunkline_machine_up", "Whether a machine of the server is heard, by name.", labels=["machine"]
    )
    behind = GaugeMetricFamily(
        "trunkline_machine_behind_entries", "Places of the log that a machine lacks.", labels=["machine"]
    )
    owned = GaugeMetricFamily(
        "trunkline_machine_partitions",
        "The partitions of the data that a machine serves.",
        labels=["machine"],
    )
    log_up = GaugeMetricFamily("trunkline_log_up", "Whether the log answers; else nothing is stored.")
    servers = GaugeMetricFamily(
        "trunkline_log_server_current", "Whether a NATS server has all of the log.", labels=["server"]
    )
    size = GaugeMetricFamily("trunkline_log_size_bytes", "Bytes of the log.")
    epoch = GaugeMetricFamily("trunkline_cluster_epoch", "How often a machine has taken over the data.")
    appends = CounterMetricFamily(
        "trunkline_log_appends", "Entries that the log has acknowledged to the machine that serves."
    )
    written = CounterMetricFamily("trunkline_log_appended_bytes", "Bytes of these entries.")
    status = None if machines.status is None else machines.status()
    if status is not None:
        for each in status.machines:
            up.add_metric([each.name], float(each.is_there))
            behind.add_metric([each.name], each.behind)
            owned.add_metric([each.name], len(each.owns))
        for server in status.servers:
            servers.add_metric([server.name], float(server.is_current))
        if status.log is not None:
            size.add_metric([], status.log.size_bytes)
        for own in status.machines[:1]:
            log_up.add_metric([], float(status.log is not None))
            epoch.add_metric([], own.epoch)
        appends.add_metric([], status.appended)
        written.add_metric([], status.appended_bytes)
    yield from (up, behind, owned, log_up, servers, size, epoch, appends, written)
