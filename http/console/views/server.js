// The machine at a glance, for operators: the counters of `/metrics`, as figures, rates and times.

import { get } from "../lib/api.js";
import { bytes, count, duration, rate } from "../lib/format.js";
import { useData } from "../lib/hooks.js";
import { fullestDisk, lastSpan, most, perSecond, quantile, total, useMetrics } from "../lib/metrics.js";
import { link } from "../lib/router.js";
import { html, useMemo } from "../lib/ui.js";
import { Card, Facts, Loaded, Notice, Page, Problem, Tile, Time } from "../parts/basics.js";
import { Chart } from "../parts/chart.js";
import { Table } from "../parts/table.js";

const SPAN_S = 60;
const TURNS_EVERY_MS = 10_000;
const CLASSES = ["state", "command", "write", "read", "backlog", "stream", "public"];
const CLASS_TIMES = "trunkline_call_duration_seconds";
const NAMED = [["calls", "Calls/s"], ["messages_handled", "Messages/s"], ["commits", "Commits/s"]];

export function Server() {
  const { readings, error } = useMetrics();
  const span = lastSpan(readings, SPAN_S);
  const lead = "Everything here is of the whole server, and comes from /metrics, which Prometheus can read too. Rates and times are those of the last minute.";
  if (error?.status === 403) return html`<${Page} title="Server"><${Notice}>${error.message} How your own applications are, <a href=${link("/applications")}>their list</a> says.</${Notice}></${Page}>`;
  return html`<${Page} title="Server" lead=${lead}>
    ${error && html`<${Problem} error=${{ message: `The counters cannot be read${readings.length ? ", so these are older" : ""}. ${error.message}` }} />`}
    ${!span && !error && html`<p class="quiet" role="status">Reading the counters of the server.</p>`}
    ${span && html`<${Health} ...${span} /><${Owners} ...${span} /><${Machines} ...${span} /><${Rates} readings=${readings} /><${Calls} ...${span} />
      <div class="columns"><${Store} ...${span} /><${Actors} ...${span} /><${Process} ...${span} /><${Work} ...${span} /><${Mqtt} ...${span} /></div>
      <${Turns} />`}
  </${Page}>`;
}

function Health({ before, after }) {
  const cpu = perSecond(before, after, "process_cpu_seconds_total");
  const cores = (after.values.get("process_start_time_seconds") || []).length;
  const refused = perSecond(before, after, "trunkline_messages_refused_total");
  const restarts = total(after, "trunkline_actor_restarts_total");
  return html`<div class="tiles">
    <${Tile} label="Calls" value=${rate(perSecond(before, after, "trunkline_calls_total"))} detail=${`${count(total(after, "trunkline_connections_open"))} connections open`} />
    <${Tile} label="Messages handled" value=${rate(perSecond(before, after, "trunkline_messages_handled_total"))} detail=${`${count(total(after, "trunkline_actors_active"))} actors in memory`} />
    <${Tile} label="Messages refused" value=${rate(refused)} tone=${refused ? "warn" : ""} detail=${`${count(total(after, "trunkline_messages_refused_total"))} since the start`} />
    <${Tile} label="Actor restarts" value=${count(restarts)} tone=${restarts ? "bad" : ""} detail="since the start" />
    <${Tile} label="Links and streams" value=${count(total(after, "trunkline_links_open") + total(after, "trunkline_streams_open"))}
      detail=${`${count(total(after, "trunkline_links_open"))} links, ${count(total(after, "trunkline_streams_open"))} streams`} />
    <${Tile} label="CPU" value=${`${Math.round(100 * cpu)} %`} detail=${cores > 1 ? `of one core, ${cores} processes` : "of one core"} tone=${cpu > 0.9 * Math.max(cores, 1) ? "warn" : ""} />
    <${Tile} label="Memory" value=${bytes(total(after, "process_resident_memory_bytes"))} detail=${`peak ${bytes(total(after, "trunkline_memory_peak_bytes"))}`} />
  </div>`;
}

function Rates({ readings }) {
  const data = useMemo(() => {
    const steps = readings.slice(1).map((after, at) => [after.at / 1000, ...NAMED.map(([name]) => perSecond(readings[at], after, `trunkline_${name}_total`))]);
    return [0, ...NAMED].map((_, column) => steps.map((step) => step[column]));
  }, [readings]);
  return html`<${Card} title="Calls, messages and commits a second">
    <${Chart} label="Rates of the last ten minutes" height=${200} series=${NAMED.map(([, name]) => ({ name }))} data=${data} /></${Card}>`;
}

function Calls({ before, after }) {
  const rows = CLASSES.map((name) => ({
    id: name,
    rate: perSecond(before, after, CLASS_TIMES + "_count", { class: name }),
    times: [0.5, 0.99].map((share) => quantile(before, after, CLASS_TIMES, share, { class: name })),
    all: total(after, CLASS_TIMES + "_count", { class: name }),
  }));
  const time = (value) => (value === null ? "-" : duration(value * 1000));
  const failed = new Map();
  for (const { labels, value } of after.values.get("trunkline_calls_total") || []) {
    if (labels.status < "400" || !value) continue;
    const key = `${labels.operation} ${labels.status}`;
    failed.set(key, { labels, value: value + (failed.get(key)?.value || 0) });
  }
  const errors = [...failed.values()].sort((one, other) => other.value - one.value).slice(0, 10);
  return html`<div class="columns">
    <${Card} flush title="Calls by class"><${Table} label="Calls by class" rows=${rows} columns=${[
      { label: "Class", render: (row) => row.id },
      { label: "Rate", number: true, render: (row) => rate(row.rate) },
      { label: "p50", number: true, render: (row) => time(row.times[0]) },
      { label: "p99", number: true, render: (row) => time(row.times[1]) },
      { label: "Since the start", number: true, render: (row) => count(row.all) },
    ]} /></${Card}>
    <${Card} flush title="Calls that were refused, since the start">
      ${errors.length === 0 ? html`<p class="empty quiet">None.</p>` : html`<${Table} label="Refused calls" rows=${errors} rowKey=${(row) => row.labels.operation + row.labels.status} columns=${[
        { label: "Operation", render: (row) => html`<code>${row.labels.operation}</code>` },
        { label: "Status", render: (row) => row.labels.status },
        { label: "Calls", number: true, render: (row) => count(row.value) },
      ]} />`}</${Card}>
  </div>`;
}

function Store({ before, after }) {
  const time = (share) => quantile(before, after, "trunkline_commit_duration_seconds", share);
  const shown = (value) => (value === null ? "no commit" : duration(value * 1000));
  const quota = total(after, "trunkline_store_quota_bytes"), disk = fullestDisk(after);
  return html`<${Card} title="Store"><${Facts} rows=${[
    ["Commit, p50 and p99", `${shown(time(0.5))}, ${shown(time(0.99))}`],
    ["Longest commit", duration(most(after, "trunkline_commit_longest_seconds") * 1000)],
    ["Commits", rate(perSecond(before, after, "trunkline_commits_total"))],
    ["Failed commits", count(total(after, "trunkline_commit_failures_total"))],
    ["Written", `${bytes(perSecond(before, after, "trunkline_bytes_written_total"))}/s`],
    ["In use", `${bytes(total(after, "trunkline_store_used_bytes"))}${quota === Infinity ? "" : ` of ${bytes(quota)}`}`],
    ["Waiting for a commit", bytes(total(after, "trunkline_journal_pending_bytes"))],
    ["Refused by the journal", count(total(after, "trunkline_journal_refusals_total"))],
    ["Disk free", `${bytes(disk.free)} of ${bytes(disk.size)}`],
  ]} /></${Card}>`;
}

// The machines of the server and its log, if there are several.
function Machines({ after }) {
  const samples = (name, label) => (after.values.get(name) || []).map(({ labels, value }) => ({ id: labels[label], value, of: { [label]: labels[label] } }));
  const machines = samples("trunkline_machine_up", "machine"), servers = samples("trunkline_log_server_current", "server");
  if (machines.length === 0) return null;
  const serves = (of) => total(after, "trunkline_machine_partitions", of);
  const behind = (of) => total(after, "trunkline_machine_behind_entries", of);
  return html`${total(after, "trunkline_log_up") === 0 && html`<${Notice}>The log does not answer: nothing can be stored.</${Notice}>`}
    <div class="columns">
    <${Card} flush title="Machines"><${Table} label="Machines" rows=${machines} columns=${[
      { label: "Machine", render: (row) => html`<code>${row.id}</code>` },
      { label: "State", render: (row) => (row.value ? (serves(row.of) ? "serves" : "follows") : "is not heard") },
      { label: "Partitions", number: true, render: (row) => count(serves(row.of)) },
      { label: "Behind", number: true, render: (row) => count(behind(row.of)) },
    ]} /></${Card}>
    <${Card} flush title="Log"><${Table} label="NATS servers of the log" rows=${servers} columns=${[
      { label: "NATS server", render: (row) => html`<code>${row.id}</code>` },
      { label: "State", render: (row) => (row.value ? "has all of the log" : "is not heard, or behind") },
    ]} /></${Card}></div>`;
}

// The owners of the partitions, if there are several.
function Owners({ before, after }) {
  const rows = (after.values.get("trunkline_process_up") || []).map(({ labels, value }) => ({ id: labels.process, up: value, of: { process: labels.process } }));
  if (rows.length === 0) return null;
  const known = (show) => (row) => (row.up ? show(row.of) : "-");
  return html`<${Card} flush title="Processes of the partitions"><${Table} label="Processes of the partitions" rows=${rows} columns=${[
    { label: "Process", render: (row) => html`<code>${row.id}</code>` },
    { label: "State", render: (row) => (row.up ? "answers" : "does not answer: its figures are missing here") },
    { label: "Applications", number: true, render: known((of) => count(total(after, "trunkline_applications", of))) },
    { label: "Store", number: true, render: known((of) => bytes(total(after, "trunkline_store_used_bytes", of))) },
    { label: "Messages", number: true, render: known((of) => rate(perSecond(before, after, "trunkline_messages_handled_total", of))) },
    { label: "Requests passed on", number: true, render: known((of) => rate(perSecond(before, after, "trunkline_requests_passed_on_total", of))) },
    { label: "Waits for others", number: true, render: known((of) => bytes(total(after, "trunkline_channel_unsent_bytes", of))) },
    { label: "Busy, last hour", number: true, render: known((of) => `${Math.round(100 * total(after, "trunkline_loop_busy_ratio", of))} %`) },
    { label: "CPU", number: true, render: known((of) => `${Math.round(100 * perSecond(before, after, "process_cpu_seconds_total", of))} %`) },
    { label: "Memory", number: true, render: known((of) => bytes(total(after, "process_resident_memory_bytes", of))) },
  ]} /></${Card}>`;
}

function Actors({ after }) {
  return html`<${Card} title="Actors"><${Facts} rows=${[
    ["In memory", count(total(after, "trunkline_actors_active"))],
    ["Fullest mailbox", `${count(most(after, "trunkline_mailbox_depth_max"))} messages`],
    ["Oldest message", duration(most(after, "trunkline_mailbox_oldest_message_age_max_seconds") * 1000)],
    ["Loaded", count(total(after, "trunkline_actor_activations_total"))],
    ["Dropped when idle", count(total(after, "trunkline_actor_deactivations_total"))],
    ["Restarted", count(total(after, "trunkline_actor_restarts_total"))],
  ]} /></${Card}>`;
}

function Process({ after }) {
  const build = after.values.get("trunkline_build_info")?.[0]?.labels || {};
  const started = most(after, "process_start_time_seconds") * 1000;
  return html`<${Card} title="Process"><${Facts} rows=${[
    ["Trunkline", build.version],
    ["Python", build.python_version],
    started && ["Started", html`<${Time} at=${started} />`],
    started && ["Runs for", duration(Date.now() - started)],
    ["Open files", count(total(after, "process_open_fds"))],
    ["Connections refused", count(total(after, "trunkline_connections_refused_total"))],
    ["Slow streams closed", count(total(after, "trunkline_slow_consumers_closed_total"))],
    ["Logins failed", count(total(after, "trunkline_logins_failed_total"))],
    ["Longest pause of the garbage collector", duration(most(after, "trunkline_gc_pause_longest_seconds") * 1000)],
  ].filter(Boolean)} /></${Card}>`;
}

function Mqtt({ before, after }) {
  const all = (name) => total(after, `trunkline_mqtt_${name}_total`);
  return html`<${Card} title="MQTT"><${Facts} rows=${[
    ["Connections", count(total(after, "trunkline_mqtt_connections"))],
    ["Clients accepted", count(all("connected"))],
    ["Messages delivered", rate(perSecond(before, after, "trunkline_mqtt_delivered_total"))],
    ["Messages dropped", count(all("dropped"))],
    ["Messages refused", count(all("refused"))],
    ["Connections ended by the server", count(all("ended"))],
    ["Bans", count(all("bans"))],
  ]} /></${Card}>`;
}

function Work({ before, after }) {
  return html`<${Card} title="Background work"><${Facts} rows=${[
    ["Workflow runs", rate(perSecond(before, after, "trunkline_flow_runs_total"))],
    ["Failed runs", count(total(after, "trunkline_flow_runs_failed_total"))],
    ["Triggers waiting", count(total(after, "trunkline_flow_triggers_waiting"))],
    ["Oldest of them", duration(most(after, "trunkline_flow_oldest_trigger_age_seconds") * 1000)],
    ["Jobs running", count(total(after, "trunkline_jobs_running"))],
    ["Jobs waiting", count(total(after, "trunkline_jobs_waiting"))],
    ["Calls in the backlog lane", count(total(after, "trunkline_backlog_calls_waiting"))],
    ["Integrations connected", count(total(after, "trunkline_integrations_connected"))],
    ["Files being uploaded", count(total(after, "trunkline_uploads_open"))],
  ]} /></${Card}>`;
}

// The longest turns of the event loop, during which all tenants waited.
function Turns() {
  const data = useData((signal) => get("/server/longTurns", {}, { signal }), [], { every: TURNS_EVERY_MS });
  return html`<${Card} flush title="Longest turns of the event loop"><${Loaded} data=${data}>${(turns) => html`
    ${turns.missing && html`<p class="quiet">Not answered: ${turns.missing.join(", ")}.</p>`}
    <p class="quiet">All tenants wait while a turn lasts. Listed are the longest above ${duration(turns.limitMs)} of the last day; the longest since the start took ${duration(turns.longestMs)}.</p>
    ${turns.items.length === 0 ? html`<p class="empty quiet">None.</p>` : html`<${Table} label="Longest turns" rows=${turns.items} rowKey=${(row) => `${row.time} ${row.durationMs} ${row.process}`} columns=${[
      { label: "Took", number: true, render: (row) => duration(row.durationMs) },
      { label: "Processor", number: true, render: (row) => duration(row.cpuMs) },
      { label: "Collector", number: true, render: (row) => duration(row.collectorMs) },
      { label: "Work", render: (row) => row.kind },
      ...(turns.items.some((row) => row.process) ? [{ label: "Process", render: (row) => html`<code>${row.process}</code>` }] : []),
      { label: "Operation", render: (row) => html`<code>${row.name}</code>${row.detail && html` <span class="quiet">${row.detail}</span>`}` },
      { label: "Application", render: (row) => (row.applicationId ? html`<code>${row.applicationId}</code>` : "-") },
      { label: "Owner", render: (row) => (row.ownerId ? html`<code>${row.ownerId}</code>` : "-") },
      { label: "Token", render: (row) => row.bearer || "-" },
      { label: "When", render: (row) => html`<${Time} at=${row.time} age />` },
    ]} />`}`}</${Loaded}></${Card}>`;
}
