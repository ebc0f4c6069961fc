// The first screen of an application: is the fleet reporting, is anything refused, is it on disk?

import { get, path } from "../lib/api.js";
import { bytes, count, duration, rate } from "../lib/format.js";
import { useData } from "../lib/hooks.js";
import { lastSpan, perSecond, quantile, total, useMetrics } from "../lib/metrics.js";
import { link } from "../lib/router.js";
import { html, useEffect, useMemo } from "../lib/ui.js";
import { Badge, Card, Empty, Fresh, Loaded, Page, Problem, Tile, Time } from "../parts/basics.js";
import { Chart } from "../parts/chart.js";
import { Table } from "../parts/table.js";
import { remember } from "./applications.js";

const EVERY_MS = 2000;
const HISTORY_S = 600;
const LEAST_HISTORY_S = 120;
const REASONS_MAX = 6;
const SERIES = [{ name: "States/s", area: true }, { name: "Commands/s" }, { name: "Refused/s", area: true }];
const LEVELS = ["critical", "error", "warning", "info"];
const TONES = { critical: "bad", error: "bad", warning: "warn", info: "accent" };

export function Overview({ app }) {
  const source = path("applications", app, "overview");
  const data = useData((signal) => get(source, {}, { signal }), [source], { every: EVERY_MS });
  useEffect(() => remember(app), [app]);
  return html`<${Page} title="Overview" actions=${html`<${Fresh} data=${data} />`}>
    <${Loaded} data=${data}>${(value) => (value.devices.total === 0 ? html`<${NoDevices} app=${app} />` : html`
      <div class="glance">
        <${Fleet} app=${app} devices=${value.devices} />
        <${Traffic} traffic=${value.traffic} time=${value.time} />
        <${Disk} />
        <${OpenEvents} app=${app} events=${value.openEvents} />
      </div>
      <${Recent} app=${app} recent=${value.recent} />`)}</${Loaded}>
  </${Page}>`;
}

function Fleet({ app, devices }) {
  const to = (query) => link("/applications", app, "devices", query);
  const share = (number) => `${count(Math.round((100 * number) / devices.total))} % of ${count(devices.total)}`;
  return html`<${Card} title="Is the fleet reporting?" actions=${html`<span class="quiet">counted <${Time} at=${devices.asOf} age /></span>`}>
    <div class="tiles">
      <${Tile} label="Reporting" value=${count(devices.reporting)} detail=${share(devices.reporting)} tone="good" to=${to({ show: "reporting" })} />
      <${Tile} label="Connected" value=${count(devices.connected)} detail=${`${count(devices.disconnected)} disconnected`} to=${to({ show: "connected" })} />
      <${Tile} label="Silent" value=${count(devices.silent)} detail="not heard of when expected" tone=${devices.silent ? "warn" : ""} to=${to({ show: "silent" })} />
      <${Tile} label="Never seen" value=${count(devices.neverSeen)} detail="no sign of life yet" to=${to({ show: "neverSeen" })} />
    </div>
  </${Card}>`;
}

function Traffic({ traffic, time }) {
  const { startedAt, refused } = traffic;
  const reasons = Object.entries(refused).sort((one, other) => other[1] - one[1]);
  const all = reasons.reduce((sum, [, number]) => sum + number, 0);
  const now = Date.parse(time) / 1000;
  const rates = useMemo(() => ratesOf(traffic, now), [time]);
  const [states, commands, refusing] = rates.slice(1).map((each) => each.at(-1) ?? null);
  return html`<${Card} title="Is anything refused?" actions=${html`<span class="quiet">since <${Time} at=${startedAt} /></span>`}>
    <div class="tiles">
      <${Tile} label="States" value=${rate(states)} detail=${`${count(traffic.states)} in all`} />
      <${Tile} label="Commands" value=${rate(commands)} detail=${`${count(traffic.commands)} in all`} />
      <${Tile} label="Refused" value=${rate(refusing)} detail=${`${count(all)} in all`} tone=${refusing ? "bad" : ""} />
    </div>
    <p class="row reasons">${reasons.length === 0 ? html`<span class="quiet">Nothing was refused.</span>`
      : html`<span class="quiet">Refused because of</span> ${reasons.slice(0, REASONS_MAX).map(([reason, number]) => html`<${Badge} tone="warn">${reason} ${count(number)}</${Badge}>`)}`}</p>
    <${Chart} label="Messages a second in the last ten minutes" height=${280} low=${0}
      series=${SERIES} data=${rates} range=${[Math.max(now - HISTORY_S, Math.min(rates[0][0], now - LEAST_HISTORY_S)), now]} />
  </${Card}>`;
}

// [times, states, commands, refusals], a second: of each whole interval at its end, and at `now` of the one in progress
// together with the one before it.
function ratesOf({ startedAt, history }, now) {
  const { intervalSeconds } = history;
  const since = Date.parse(startedAt) / 1000, begin = Date.parse(history.start) / 1000;
  const last = history.states.length - 1;
  const whole = history.states.map((_, at) => at).filter((at) => at < last && begin + at * intervalSeconds >= since);
  const span = now - Math.max(begin + (last - 1) * intervalSeconds, since);
  const columns = [history.states, history.commands, history.refused].map((numbers) => [
    ...whole.map((at) => numbers[at] / intervalSeconds), ((numbers[last - 1] || 0) + numbers[last]) / Math.max(span, 1),
  ]);
  return [[...whole.map((at) => begin + (at + 1) * intervalSeconds), now], ...columns];
}

// The store is shared by all applications of the server.
function Disk() {
  const { readings, error } = useMetrics();
  const span = lastSpan(readings, 60);
  if (error && error.status === 403) return null; // the store of all is shown to operators only
  if (error && !span) {
    return html`<${Card} title="Is it on disk?"><${Problem} error=${{ message: `The counters of the server cannot be read here. ${error.message}` }} /></${Card}>`;
  }
  if (!span) return html`<${Card} title="Is it on disk?"><p class="quiet" role="status">Reading the counters of the server.</p></${Card}>`;
  const { before, after } = span;
  const commit = (share) => quantile(before, after, "trunkline_commit_duration_seconds", share);
  const longest = total(after, "trunkline_commit_longest_seconds");
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
      <${Tile} label="Commit, p50" value=${p50 === null ? "-" : duration(Math.min(p50, longest) * 1000)} detail=${p50 === null ? none : "half are faster"} />
      <${Tile} label="Commit, p99" value=${p99 === null ? "-" : duration(Math.min(p99, longest) * 1000)} tone=${p99 > 0.25 ? "warn" : ""} detail=${`longest ${duration(longest * 1000)}`} />
      <${Tile} label="Commits" value=${rate(perSecond(before, after, "trunkline_commits_total"))} detail=${`${count(total(after, "trunkline_commits_total"))} in all`} />
      <${Tile} label="Group size" value=${commits ? (batches / commits).toFixed(1) : "-"} detail="writes together" />
      <${Tile} label="Store" value=${bytes(total(after, "trunkline_store_used_bytes"))} detail=${grown === null ? "" : `${grown < 0 ? "" : "+"}${bytes(grown * 3600)} an hour`} />
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
