// The first screen of an application: is the fleet reporting, is anything refused, is it on disk?

import { get, path } from "../lib/api.js";
import { bytes, count, duration, rate } from "../lib/format.js";
import { useData } from "../lib/hooks.js";
import { lastSpan, perSecond, quantile, total, useMetrics } from "../lib/metrics.js";
import { link } from "../lib/router.js";
import { html, useEffect, useMemo, useRef } from "../lib/ui.js";
import { Badge, Card, Empty, Fresh, Loaded, Page, Problem, Tile, Time } from "../parts/basics.js";
import { Chart } from "../parts/chart.js";
import { Table } from "../parts/table.js";
import { remember } from "./applications.js";

const EVERY_MS = 2000;
const RATE_SPAN_MS = 10_000;
const HISTORY_MS = 600_000;
const LEVELS = ["critical", "error", "warning", "info"];
const TONES = { critical: "bad", error: "bad", warning: "warn", info: "accent" };

export function Overview({ app }) {
  const source = path("applications", app, "overview");
  const data = useData((signal) => get(source, {}, { signal }), [source], { every: EVERY_MS });
  useEffect(() => remember(app), [app]);
  const history = useHistory(data.value);
  return html`<${Page} title="Overview" actions=${html`<${Fresh} data=${data} />`}>
    <${Loaded} data=${data}>${(value) => (value.devices.total === 0 ? html`<${NoDevices} app=${app} />` : html`
      <${Fleet} app=${app} devices=${value.devices} />
      <${Traffic} value=${value} history=${history} />
      <${Disk} />
      <${OpenEvents} app=${app} events=${value.openEvents} />
      <${Recent} app=${app} recent=${value.recent} />`)}</${Loaded}>
  </${Page}>`;
}

// The answers of the last ten minutes, oldest first. They begin anew when the server was started again.
function useHistory(value) {
  const kept = useRef([]);
  return useMemo(() => {
    if (!value) return kept.current;
    const before = kept.current.at(-1);
    const at = Date.parse(value.time);
    const same = before?.startedAt === value.traffic.startedAt;
    const refused = Object.values(value.traffic.refused).reduce((sum, each) => sum + each, 0);
    const next = { at, startedAt: value.traffic.startedAt, states: value.traffic.states, commands: value.traffic.commands, refused };
    kept.current = [...(same ? kept.current.filter((each) => each.at > at - HISTORY_MS && each.at < at) : []), next];
    return kept.current;
  }, [value]);
}

function rateOf(history, name) {
  const last = history.at(-1);
  const first = history.find((each) => each.at >= last.at - RATE_SPAN_MS);
  return last.at > first.at ? ((last[name] - first[name]) * 1000) / (last.at - first.at) : null;
}

function Fleet({ app, devices }) {
  const to = (query) => link("/applications", app, "devices", query);
  const share = (number) => `${count(Math.round((100 * number) / devices.total))} % of ${count(devices.total)}`;
  return html`<${Card} title="Is the fleet reporting?" actions=${html`<span class="quiet">counted <${Time} at=${devices.asOf} age /></span>`}>
    <div class="tiles">
      <${Tile} label="Reporting" value=${count(devices.reporting)} detail=${share(devices.reporting)} tone="good" to=${to({ show: "reporting" })} />
      <${Tile} label="Connected" value=${count(devices.connected)} detail=${`${count(devices.disconnected)} disconnected`} to=${to({ show: "connected" })} />
      <${Tile} label="Silent" value=${count(devices.silent)} detail="for more than 5 min" tone=${devices.silent ? "warn" : ""} to=${to({ show: "silent" })} />
      <${Tile} label="Never seen" value=${count(devices.neverSeen)} detail="no report and no connection" to=${to({ show: "neverSeen" })} />
    </div>
  </${Card}>`;
}

function Traffic({ value, history }) {
  const { refused } = value.traffic;
  const reasons = Object.entries(refused).sort((one, other) => other[1] - one[1]);
  const all = reasons.reduce((sum, [, number]) => sum + number, 0);
  const refusing = history.length > 1 ? rateOf(history, "refused") : null;
  const chart = useMemo(() => {
    const steps = history.slice(1).map((each, at) => {
      const before = history[at];
      const each_s = (each.at - before.at) / 1000;
      return [each.at / 1000, (each.states - before.states) / each_s, (each.commands - before.commands) / each_s, (each.refused - before.refused) / each_s];
    });
    return [0, 1, 2, 3].map((column) => steps.map((step) => step[column]));
  }, [history]);
  return html`<${Card} title="Is anything refused?">
    <div class="tiles">
      <${Tile} label="States stored" value=${rate(history.length > 1 ? rateOf(history, "states") : null)} detail=${`${count(value.traffic.states)} since the start`} />
      <${Tile} label="Commands" value=${rate(history.length > 1 ? rateOf(history, "commands") : null)} detail=${`${count(value.traffic.commands)} since the start`} />
      <${Tile} label="Refused" value=${rate(refusing)} detail=${`${count(all)} since the start`} tone=${refusing ? "bad" : ""} />
      <div class="tile"><span class="label">Refused by reason</span>
        ${reasons.length === 0 ? html`<span class="detail">Nothing was refused since <${Time} at=${value.traffic.startedAt} />.</span>`
          : html`<span class="row">${reasons.slice(0, 6).map(([reason, number]) => html`<${Badge} tone="warn">${reason} ${count(number)}</${Badge}>`)}</span>`}</div>
    </div>
    <${Chart} label="Messages a second in the last minutes" height=${180}
      series=${[{ name: "States/s" }, { name: "Commands/s" }, { name: "Refused/s" }]} data=${chart}
      range=${history.length ? [history[0].at / 1000, Math.max(history.at(-1).at, history[0].at + 60_000) / 1000] : undefined} />
  </${Card}>`;
}

// The store is shared by all applications of the server.
function Disk() {
  const { readings, error } = useMetrics();
  const span = lastSpan(readings, 60);
  if (error && !span) {
    return html`<${Card} title="Is it on disk?"><${Problem} error=${{ message: `The counters of the server cannot be read here. ${error.message}` }} /></${Card}>`;
  }
  if (!span) return html`<${Card} title="Is it on disk?"><p class="quiet" role="status">Reading the counters of the server.</p></${Card}>`;
  const { before, after } = span;
  const commit = (share) => quantile(before, after, "trunkline_commit_duration_seconds", share);
  const p50 = commit(0.5), p99 = commit(0.99);
  const commits = total(after, "trunkline_commits_total") - total(before, "trunkline_commits_total");
  const batches = total(after, "trunkline_batches_total") - total(before, "trunkline_batches_total");
  const failures = total(after, "trunkline_commit_failures_total");
  const long = lastSpan(readings, 600);
  const grown = perSecond(long.before, long.after, "trunkline_store_used_bytes");
  const free = total(after, "trunkline_disk_free_bytes"), size = total(after, "trunkline_disk_size_bytes");
  const none = "no commit in the last minute";
  return html`<${Card} title="Is it on disk?" actions=${html`<span class="quiet">the whole server, last minute</span>`}>
    ${failures > 0 && html`<${Problem} error=${{ message: `${count(failures)} commits have failed since the start. Look at the log of the server.` }} />`}
    <div class="tiles">
      <${Tile} label="Commit, p50" value=${p50 === null ? "-" : duration(p50 * 1000)} detail=${p50 === null ? none : `${rate(perSecond(before, after, "trunkline_commits_total"))} commits`} />
      <${Tile} label="Commit, p99" value=${p99 === null ? "-" : duration(p99 * 1000)} tone=${p99 > 0.25 ? "warn" : ""} detail=${`longest since the start ${duration(total(after, "trunkline_commit_longest_seconds") * 1000)}`} />
      <${Tile} label="Group size" value=${commits ? (batches / commits).toFixed(1) : "-"} detail="writes in a commit" />
      <${Tile} label="Store" value=${bytes(total(after, "trunkline_store_used_bytes"))} detail=${grown === null ? "" : `grows by ${bytes(grown * 3600)} an hour`} />
      <${Tile} label="Disk free" value=${bytes(free)} detail=${`of ${bytes(size)}`} tone=${free < size / 10 ? "bad" : ""} />
    </div>
  </${Card}>`;
}

function OpenEvents({ app, events }) {
  const to = (level) => link("/applications", app, "events", { level, state: "open" });
  const all = (level) => events.new[level] + events.acknowledged[level];
  return html`<${Card} title="Open events" actions=${html`<a href=${link("/applications", app, "events")}>All events</a>`}>
    <div class="tiles">${LEVELS.map((level) => html`<${Tile} label=${level} value=${count(all(level))} to=${to(level)}
      tone=${all(level) ? TONES[level] : ""} detail=${`${count(events.new[level])} new, ${count(events.acknowledged[level])} acknowledged`} />`)}</div>
  </${Card}>`;
}

function Recent({ app, recent }) {
  const device = (row) => (row.deviceId ? html`<a href=${link("/applications", app, "devices", row.deviceId)}>${row.name || row.deviceId}</a>` : html`<span class="quiet">-</span>`);
  const list = (title, rows, none, columns) => html`<${Card} flush title=${title}>
    ${rows.length === 0 ? html`<p class="empty quiet">${none}</p>` : html`<${Table} label=${title} rows=${rows} columns=${columns} rowKey=${(row) => rows.indexOf(row)} />`}
  </${Card}>`;
  return html`<div class="columns">
    ${list("Refused last", recent.refused, "Nothing was refused since the server started.", [
      { label: "When", render: (row) => html`<${Time} at=${row.time} age />` },
      { label: "Device", render: device },
      { label: "Why", render: (row) => html`<${Badge} tone="bad">${row.reason}</${Badge}> ${row.message}` },
    ])}
    ${list("Fell silent last", recent.silent, "No device has fallen silent.", [
      { label: "Last seen", render: (row) => html`<${Time} at=${row.lastSeen} age />` },
      { label: "Device", render: device },
    ])}
    ${list("Connected and disconnected last", recent.connections, "No device has connected or disconnected since the server started.", [
      { label: "When", render: (row) => html`<${Time} at=${row.time} age />` },
      { label: "Device", render: device },
      { label: "What", render: (row) => (row.connected ? html`<${Badge} tone="good">connected</${Badge}>` : html`<${Badge}>disconnected</${Badge}> ${row.disconnectReason || ""}`) },
    ])}
    ${list("Changed last", recent.changed, "No device was changed.", [
      { label: "When", render: (row) => html`<${Time} at=${row.lastUpdated} age />` },
      { label: "Device", render: device },
    ])}
  </div>`;
}

function NoDevices({ app }) {
  return html`<${Card} flush><${Empty} title="This application has no devices yet"
    call=${{ method: "POST", path: path("applications", app, "devices"), body: { name: "greenhouse", attributes: [{ name: "temperature", dataType: "number" }] } }}>
    <p>Create a device. Then it can send states, and this page shows whether they arrive.</p>
    <div><a class="button primary" href=${link("/applications", app, "devices")}>Go to the devices</a></div></${Empty}></${Card}>`;
}
