"""The Prometheus metrics of a process, read at each scrape from counters that exist anyway.

They cost the handling of calls nothing more: the actors, the journal and the dispatcher count plain integers.
`docs/reference/metrics.md` lists every metric, and a test compares the two.
"""

from __future__ import annotations

import gc
import math
import platform
import resource
import shutil
import time
from collections.abc import Iterator, Sequence
from itertools import accumulate

from prometheus_client import ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from trunkline.actors.connections.integrations.connections import Connections
from trunkline.actors.core.contents.downloads import Downloads
from trunkline.actors.core.contents.uploads import Uploads
from trunkline.actors.core.runtime.loop_watch import TURN_TIMES_S, LoopWatch
from trunkline.actors.core.runtime.machines import Machines
from trunkline.actors.core.scripts.pool import ScriptPool
from trunkline.actors.data.topics.broker import Broker
from trunkline.actors.engine.runner import FlowRunner
from trunkline.actors.fleet.devices.commands.links import Links
from trunkline.actors.fleet.devices.state.backlog import BacklogLane
from trunkline.actors.maintenance.retention import Retention
from trunkline.actors.platform.jobs.runner import Jobs
from trunkline.actors.presentation.experience.counts import RequestCounts
from trunkline.actors.workflows.triggers.queue import TriggerQueue
from trunkline.http.calls.call_statistics import CALL_TIMES_S
from trunkline.http.calls.dispatch import Dispatcher
from trunkline.http.metrics.machine_metrics import machine_metrics
from trunkline.http.mqtt.service import MqttService
from trunkline.http.wire.connection_counts import ConnectionCounts
from trunkline.http.wire.garbage_collection import PAUSES


class MetricsCollector(Collector):
    """Collects the metrics of one process."""

    def __init__(
        self, dispatcher: Dispatcher, connections: ConnectionCounts | None = None, version: str = ""
    ) -> None:
        self._dispatcher = dispatcher
        self._version = version
        self._counts = connections or ConnectionCounts()

    def collect(self) -> Iterator[Metric]:
        yield from self._connections()
        yield from self._calls()
        yield from self._actors()
        yield from self._backlog()
        yield from self._streams()
        yield from self._links()
        yield from self._mqtt()
        yield from self._jobs()
        yield from self._files()
        yield from self._integrations()
        yield from self._care()
        yield from self._experiences()
        yield from self._flows()
        yield from self._retention()
        yield from self._journal()
        yield from machine_metrics(self._dispatcher.system.component(Machines))
        yield from self._loop()
        yield from self._process()

    def _connections(self) -> Iterator[Metric]:
        counts = self._counts
        yield _gauge("connections_open", "Open connections.", counts.connections)
        yield _counter("connections_accepted", "Connections accepted.", counts.accepted)
        yield _counter(
            "connections_refused", "Connections refused at the limit of the server.", counts.refused
        )
        yield _counter(
            "connections_displaced",
            "Idle connections closed for new ones at the limit of the server.",
            counts.displaced,
        )
        yield _counter(
            "connections_timed_out",
            "Connections closed because the client was idle or slow for too long.",
            counts.timed_out,
        )
        yield _gauge("doors", "Processes that serve clients for this one.", counts.doors)
        yield _counter(
            "doors_cpu_seconds", "Processor time of these processes, in seconds.", counts.doors_cpu_s
        )
        yield _gauge(
            "heads_known", "Heads of requests that are looked up when they come again.", counts.heads_known
        )
        yield _counter(
            "heads_found", "Requests whose head was looked up instead of parsed.", counts.heads_found
        )

    def _calls(self) -> Iterator[Metric]:
        answered = CounterMetricFamily(
            "trunkline_calls", "Calls answered, by operation and status.", labels=["operation", "status"]
        )
        for (operation, status), count in sorted(self._dispatcher.statistics.answered.items()):
            answered.add_metric([operation, str(status)], count)
        yield answered
        times = HistogramMetricFamily(
            "trunkline_call_duration_seconds",
            "Time of a call from the whole request to its response, by class of operations.",
            labels=["class"],
        )
        for name, each in self._dispatcher.statistics.times.items():
            times.add_metric([name], *_histogram(CALL_TIMES_S, each.counts, each.total_s))
        yield times
        calls = self._dispatcher.idempotent_calls
        yield _counter(
            "calls_repeated", "Calls answered with the stored answer of an earlier one.", calls.repeated
        )
        yield _counter(
            "idempotency_keys_forgotten",
            "Answers of calls with an Idempotency-Key that made room for others before they expired.",
            calls.forgotten,
        )
        yield _counter("logins_failed", "Logins that failed.", self._dispatcher.login_failures.count)
        yield _counter(
            "tokens_verified", "Tokens verified without help of the cache.", self._dispatcher.tokens.verified
        )

    def _actors(self) -> Iterator[Metric]:
        system = self._dispatcher.system
        now_s = system.clock.monotonic_s()
        depth_max, age_max_s = 0, 0.0
        for mailbox in system.mailboxes():
            depth_max = max(depth_max, mailbox.depth)
            age_max_s = max(age_max_s, mailbox.oldest_message_age_s(now_s))
        yield _gauge("actors_active", "Actors in memory.", system.active)
        yield _gauge("mailbox_depth_max", "Messages in the fullest mailbox.", depth_max)
        yield _gauge("mailbox_oldest_message_age_max_seconds", "Age of the oldest queued message.", age_max_s)
        yield _counter("messages_handled", "Messages that actors handled.", system.handled)
        yield _counter(
            "messages_refused", "Messages refused by a throttle, a limit or an actor.", system.refused
        )
        yield _counter("actor_restarts", "Actors restarted after a fault.", system.restarts)
        yield _counter("actor_activations", "Actors loaded into memory.", system.activations)
        yield _counter("actor_deactivations", "Idle actors dropped from memory.", system.deactivations)

    def _backlog(self) -> Iterator[Metric]:
        lane = self._dispatcher.system.component(BacklogLane)
        yield _gauge("backlog_calls_waiting", "Calls that wait in the backlog lane.", lane.waiting)
        yield _gauge("backlog_bytes_waiting", "Bytes of the bodies of these calls.", lane.waiting_bytes)
        yield _counter("backlog_states", "States whose turn in the backlog lane came.", lane.states)
        yield _counter("backlog_refused", "Calls that the backlog lane refused.", lane.refused)

    def _links(self) -> Iterator[Metric]:
        links = self._dispatcher.system.component(Links)
        yield _gauge("links_open", "Open links of devices.", len(links))
        yield _counter("link_commands_sent", "Commands sent over links, repetitions included.", links.sent)
        yield _counter(
            "link_commands_acknowledged", "Commands that devices acknowledged.", links.acknowledged
        )
        yield _counter("link_commands_expired", "Waiting commands found to have expired.", links.expired)

    def _streams(self) -> Iterator[Metric]:
        system = self._dispatcher.system
        yield _gauge("streams_open", "Open event streams.", len(system.streams))
        yield _counter(
            "events_published", "Events put into the buffers of streams.", system.streams.published
        )
        yield _counter(
            "slow_consumers_closed",
            "Streams closed because their reader fell behind.",
            system.streams.slow_consumers,
        )

    def _mqtt(self) -> Iterator[Metric]:
        system = self._dispatcher.system
        service, broker = system.component(MqttService), system.component(Broker)
        yield _gauge("mqtt_connections", "Open connections of MQTT clients.", len(service.sessions))
        yield _counter("mqtt_connected", "MQTT clients that were accepted.", service.connected)
        yield _counter(
            "mqtt_delivered", "Messages of topics that were given to MQTT clients.", broker.delivered
        )
        yield _counter(
            "mqtt_dropped",
            "Messages that MQTT clients were not sent: no room, above a rate, expired, or too large for the client.",
            broker.dropped + service.dropped,
        )
        yield _counter("mqtt_refused", "Messages of MQTT clients that were not stored.", service.refused)
        yield _counter(
            "mqtt_ended",
            "Connections of MQTT clients that the server has ended because of what they did.",
            service.ends.count,
        )
        yield _counter(
            "mqtt_bans", "Bans of MQTT clients that have sent too much.", service.client_limits.bans
        )

    def _jobs(self) -> Iterator[Metric]:
        jobs = self._dispatcher.system.component(Jobs)
        yield _gauge("jobs_waiting", "Jobs that wait for their turn.", len(jobs.queue))
        yield _gauge("jobs_running", "Jobs that are being done.", len(jobs.running))
        ended = CounterMetricFamily(
            "trunkline_jobs_ended",
            "Jobs that have ended, by operation and status.",
            labels=["operation", "status"],
        )
        for labels, count in sorted(jobs.queue.ended.items()):
            ended.add_metric(labels, count)
        yield ended
        yield _gauge("downloads_open", "Results that are being fetched.", jobs.results.downloads)

    def _files(self) -> Iterator[Metric]:
        system = self._dispatcher.system
        yield _gauge("uploads_open", "Files that are being uploaded.", system.component(Uploads).running)
        yield _gauge(
            "file_downloads_open", "Files that are being downloaded.", system.component(Downloads).running
        )

    def _integrations(self) -> Iterator[Metric]:
        connections = self._dispatcher.system.component(Connections)
        counts = connections.counts
        yield _gauge(
            "integrations_enabled", "Enabled integrations that need a connection.", connections.enabled
        )
        yield _gauge(
            "integrations_connected", "Integrations whose connection is open.", connections.connected
        )
        yield _counter(
            "integration_messages", "Messages that arrived on these connections.", counts["messages"]
        )
        yield _counter("integration_ends", "Connections of integrations that ended.", counts["ended"])
        yield _counter("integration_failures", "Attempts to open one that failed.", counts["failed"])

    def _care(self) -> Iterator[Metric]:
        """What an operator has to see to in time."""
        yield _gauge(
            "certificate_expiry_timestamp_seconds",
            "When the first certificate of the chain in use expires; +Inf without TLS.",
            self._dispatcher.certificate_expires_s(),
        )
        yield _gauge(
            "last_backup_timestamp_seconds",
            "When the last backup of the data directory was complete; 0 if there was none.",
            self._dispatcher.system.store.directory.last_backup_s(),
        )

    def _experiences(self) -> Iterator[Metric]:
        answered = CounterMetricFamily(
            "trunkline_experience_requests", "Requests to experiences answered, by status.", labels=["status"]
        )
        for status, count in sorted(self._dispatcher.system.component(RequestCounts).answered.items()):
            answered.add_metric([str(status)], count)
        yield answered

    def _flows(self) -> Iterator[Metric]:
        system = self._dispatcher.system
        queue, runner = system.component(TriggerQueue), system.component(FlowRunner)
        scripts = system.component(ScriptPool)
        oldest_ms = queue.oldest_of_all_ms()
        lag_ms = 0 if oldest_ms is None else max(0, system.clock.wall_ms() - oldest_ms)
        yield _gauge("flow_triggers_waiting", "Triggers that wait for a run.", queue.waiting)
        yield _gauge("flow_oldest_trigger_age_seconds", "Age of the oldest of them.", lag_ms / 1000)
        yield _counter("flow_triggers_dropped", "Triggers that were not run.", queue.dropped_count)
        yield _gauge("flow_runs_running", "Runs of workflows that have begun.", runner.running)
        yield _counter("flow_runs", "Runs of workflows that have ended.", runner.runs)
        yield _counter("flow_runs_failed", "Those of them that have failed.", runner.failed)
        yield _gauge("script_calls_waiting", "Scripts that wait for a process.", scripts.waiting)
        yield _counter("script_processes_started", "Processes of scripts that were started.", scripts.started)
        yield _counter(
            "script_processes_lost", "Processes of scripts that ended during a call.", scripts.lost
        )

    def _retention(self) -> Iterator[Metric]:
        removed = CounterMetricFamily(
            "trunkline_expired_entries", "Entries removed because of their age, by kind.", labels=["kind"]
        )
        for kind, count in sorted(self._dispatcher.system.component(Retention).removed.items()):
            removed.add_metric([kind], count)
        yield removed

    def _journal(self) -> Iterator[Metric]:
        journal = self._dispatcher.system.journal
        statistics = journal.statistics
        yield _counter("commits", "Group commits.", statistics.commits)
        yield _counter("commit_failures", "Group commits that failed.", statistics.failures)
        yield _counter("batches", "Batches committed.", statistics.batches)
        yield _counter("puts", "Keys written.", statistics.puts)
        yield _counter("deletes", "Keys deleted.", statistics.deletes)
        yield _counter("bytes_written", "Bytes of keys and values written.", statistics.bytes)
        yield _counter("map_growths", "Times that the map of the store grew.", statistics.growths)
        yield _counter(
            "journal_refusals",
            "Batches refused because too much waited, or at the quota.",
            statistics.refused,
        )
        times = HistogramMetricFamily(
            "trunkline_commit_duration_seconds", "Time of a group commit; the event loop waits for it."
        )
        times.add_metric(
            [], *_histogram(statistics.time_bounds_s, statistics.commit_times, statistics.total_commit_s)
        )
        yield times
        yield _gauge("commit_longest_seconds", "Seconds of the longest commit.", statistics.longest_commit_s)
        yield _gauge("journal_pending_bytes", "Bytes that wait for a commit.", journal.pending_bytes)
        sizes = HistogramMetricFamily("trunkline_group_size", "Batches in a group commit.")
        buckets: list[tuple[str, float]] = []
        total = 0
        for power, count in enumerate(statistics.group_sizes):
            total += count
            buckets.append((str((2 << power) - 1), total))
        sizes.add_metric([], [*buckets, ("+Inf", total)], sum_value=statistics.batches)
        yield sizes
        store = self._dispatcher.system.store.sizes()
        disk = shutil.disk_usage(self._dispatcher.system.store.directory.path)
        yield _gauge("store_used_bytes", "Bytes of the store's file in use.", store.used)
        yield _gauge("store_map_bytes", "Address space mapped for the store.", store.map)
        yield _gauge(
            "store_quota_bytes",
            "The quota of the store's file; +Inf if there is none.",
            store.quota or math.inf,
        )
        yield _gauge("disk_free_bytes", "Free bytes of the file system of the data directory.", disk.free)
        yield _gauge("disk_size_bytes", "Size of the file system of the data directory.", disk.total)

    def _loop(self) -> Iterator[Metric]:
        watch = self._dispatcher.system.component(LoopWatch)
        times = HistogramMetricFamily(
            "trunkline_loop_turn_duration_seconds",
            "How long one turn held the event loop, for which all others wait.",
        )
        times.add_metric([], *_histogram(TURN_TIMES_S, watch.counts, watch.total_ns / 1e9))
        yield times
        long = CounterMetricFamily(
            "trunkline_loop_long_turns", "Turns over `loop_turn_ms_max`, by kind of work.", labels=["kind"]
        )
        for kind, count in watch.long_turns.items():
            long.add_metric([kind], count)
        yield long
        yield _gauge("loop_turn_longest_seconds", "Seconds of the longest turn.", watch.longest_ns / 1e9)
        counted_s, busy_s = watch.hour.busy(time.perf_counter_ns())
        yield _gauge(
            "loop_busy_ratio",
            "Share of the last hour, or since the start if that is later, in which the event loop worked.",
            busy_s / counted_s,
        )

    def _process(self) -> Iterator[Metric]:
        yield from ProcessCollector(registry=None).collect()
        build = GaugeMetricFamily(
            "trunkline_build_info", "1; the labels tell what runs.", labels=["version", "python_version"]
        )
        build.add_metric([self._version, platform.python_version()], 1)
        yield build
        usage = resource.getrusage(resource.RUSAGE_SELF)
        yield _gauge("memory_peak_bytes", "Largest resident memory so far.", usage.ru_maxrss * 1024)
        yield _counter(
            "gc_collections", "Runs of the oldest generation's collector.", gc.get_stats()[2]["collections"]
        )
        yield _counter("gc_pause_seconds", "Seconds that the collector stopped everything.", PAUSES.total_s)
        yield _gauge("gc_pause_longest_seconds", "Seconds of its longest pause.", PAUSES.longest_s)


def _histogram(
    bounds: Sequence[float], counts: Sequence[int], total: float
) -> tuple[list[tuple[str, float]], float]:
    """The buckets of a histogram, which contain those before them, and its sum. `counts` has one more than bounds."""
    names = [*map(str, bounds), "+Inf"]
    return list(zip(names, accumulate(counts), strict=True)), total


def _counter(name: str, help: str, value: float) -> Metric:
    family = CounterMetricFamily(f"trunkline_{name}", help)
    family.add_metric([], value)
    return family


def _gauge(name: str, help: str, value: float) -> Metric:
    family = GaugeMetricFamily(f"trunkline_{name}", help)
    family.add_metric([], value)
    return family
