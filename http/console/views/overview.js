// The first screen of an application: is it well, and if not, why? Then the figures.

import { get, path } from "../lib/api.js";
import { rememberApplication } from "../lib/application.js";
import { bytes, count, duration, rate } from "../lib/format.js";
import { useData } from "../lib/hooks.js";
import { fullestDisk, lastSpan, most, perSecond, quantile, total, useMetrics } from "../lib/metrics.js";
import { isOperator } from "../lib/me.js";
import { link } from "../lib/router.js";
import { html, useEffect, useMemo } from "../lib/ui.js";
import { Badge, Card, Empty, Fresh, Loaded, Page, Tile, Time } from "../parts/basics.js";
import { Chart } from "../parts/chart.js";
import { HEALTH } from "../parts/health.js";
import { Mark } from "../parts/icon.js";
import { Table } from "../parts/table.js";
import { Verdict } from "./overview/verdict.js";

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
  const health = useData((signal) => get(path("applications", app, "health"), {}, { signal }), [app], { every: EVERY_MS }).value;
  useEffect(() => rememberApplication(app), [app]);
  const tab = health && HEALTH[health.verdict][1];
  return html`<${Page} title="Overview" tab=${tab} actions=${html`<${Fresh} data=${data} />`}>
    <${Loaded} data=${data}>${(value) => (value.devices.total === 0 ? html`<${NoDevices} app=${app} />` : html`
      ${health && html`<${Verdict} app=${app} health=${health} />`}
      <div class="glance">
        <${Fleet} app=${app} devices=${value.devices} />
        <${Traffic} traffic=${value.traffic} time=${value.time} />
        <${OpenEvents} app=${app} events=${value.openEvents} />
        <${FellSilent} app=${app} rows=${value.recent.silent} />
      </div>
      <${Recent} app=${app} recent=${value.recent} />${isOperator() && html`<${ServerLine} />`}`)}</${Loaded}>
  </${Page}>`;
}

function Fleet({ app, devices }) {
  const to = (query) => link("/applications", app, "devices", query);
  const { total, reporting, silent } = devices;
  const share = `${count(Math.round((100 * reporting) / total))} % of ${count(total)}`;
  const seen = reporting + silent;
  const tone = silent === 0 ? (reporting ? "good" : "") : silent * 2 >= seen ? "bad" : "warn";
  return html`<${Card} title="Is the fleet reporting?" actions=${html`<span class="quiet">counted <${Time} at=${devices.asOf} age /></span>`}>
    <div class="tiles">
      <${Tile} label="Reporting" value=${count(reporting)} detail=${share} tone=${tone} to=${to({ show: "reporting" })} />
      <${Tile} label="Silent" value=${count(silent)} detail="not heard of when expected" tone=${silent ? tone : ""} to=${to({ show: "silent" })} />
      <${Tile} label="Never seen" value=${count(devices.neverSeen)} detail="no sign of life yet" to=${to({ show: "neverSeen" })} />
      <${Tile} label="Connected" value=${count(devices.connected)} detail=${`${count(devices.disconnected)} disconnected`} to=${to({ show: "connected" })} />
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

// The store is shared by all applications of the server: one line, for who operates it.
function ServerLine() {
  const { readings, error } = useMetrics();
  const span = lastSpan(readings, 60);
  if (error && !span) return html`<p class="server-line">The counters of the server cannot be read here. ${error.message}</p>`;
  if (!span) return null;
  const { before, after } = span;
  const p99 = quantile(before, after, "trunkline_commit_duration_seconds", 0.99);
  const longest = most(after, "trunkline_commit_longest_seconds");
  const failures = total(after, "trunkline_commit_failures_total");
  const { free, size } = fullestDisk(after);
  const tone = failures || free < size / 10 ? "bad" : p99 > 0.25 ? "warn" : "good";
  return html`<p class="server-line"><span><${Mark} tone=${tone} /> <a href=${link("/server")}>Server</a></span>
    ${failures > 0 && html`<span><b>${count(failures)}</b> commits have failed</span>`}
    <span><b>${bytes(free)}</b> of ${bytes(size)} free</span>
    <span>store <b>${bytes(total(after, "trunkline_store_used_bytes"))}</b></span>
    <span><b>${rate(perSecond(before, after, "trunkline_commits_total"))}</b> commits${p99 === null ? "" : html`, 99 % within <b>${duration(Math.min(p99, longest) * 1000)}</b>`}</span></p>`;
}

function OpenEvents({ app, events }) {
  const to = (level) => link("/applications", app, "events", { level, state: "open" });
  const all = (level) => events.new[level] + events.acknowledged[level];
  return html`<${Card} title="Open events" actions=${html`<a href=${link("/applications", app, "events")}>All events</a>`}>
    <div class="tiles">${LEVELS.map((level) => html`<${Tile} label=${level} value=${count(all(level))} to=${to(level)}
      tone=${all(level) ? TONES[level] : ""} detail=${`${count(events.new[level])} new, ${count(events.acknowledged[level])} acknowledged`} />`)}</div>
  </${Card}>`;
}

const device = (app) => (row) => (row.deviceId ? html`<a href=${link("/applications", app, "devices", row.deviceId)}>${row.name || row.deviceId}</a>` : html`<span class="quiet">-</span>`);

const list = (title, rows, none, columns) => html`<${Card} flush title=${title}>
  ${rows.length === 0 ? html`<p class="empty quiet">${none}</p>` : html`<${Table} label=${title} rows=${rows} columns=${columns} rowKey=${(row) => rows.indexOf(row)} />`}
</${Card}>`;

const FellSilent = ({ app, rows }) => list("Fell silent last", rows, "No device has fallen silent.", [
  { label: "Device", render: device(app) },
  { label: "Last sign of life", render: (row) => html`<${Time} at=${row.lastSeen} age />` },
]);

function Recent({ app, recent }) {
  return html`<div class="columns">
    ${list("Refused last", recent.refused, "Nothing was refused since the server started.", [
      { label: "When", render: (row) => html`<${Time} at=${row.time} age />` },
      { label: "Device", render: device(app) },
      { label: "Why", render: (row) => html`<${Badge} tone="bad">${row.reason}</${Badge}> ${row.message}` },
    ])}
    ${list("Connected and disconnected last", recent.connections, "No device has connected or disconnected since the server started.", [
      { label: "When", render: (row) => html`<${Time} at=${row.time} age />` },
      { label: "Device", render: device(app) },
      { label: "What", render: (row) => (row.connected ? html`<${Badge} tone="good">connected</${Badge}>` : html`<${Badge}>disconnected</${Badge}> ${row.disconnectReason || ""}`) },
    ])}
    ${list("Changed last", recent.changed, "No device was changed.", [
      { label: "When", render: (row) => html`<${Time} at=${row.lastUpdated} age />` },
      { label: "Device", render: device(app) },
    ])}
  </div>`;
}

function NoDevices({ app }) {
  return html`<${Card} flush><${Empty} title="This application has no devices yet"
    call=${{ method: "POST", path: path("applications", app, "devices"), body: { name: "greenhouse", attributes: [{ name: "temperature", dataType: "number" }] } }}>
    <p>Add a device: you get a program that reports as this device, and this page shows whether its states arrive.</p>
    <div data-write><a class="button primary" href=${link("/applications", app, "devices", "add")}>Add devices</a></div></${Empty}></${Card}>`;
}
