// The runs of a workflow: how many there were, how long they took, and the records that are kept, followed live.

import { get, path } from "../../lib/api.js";
import { duration, plural } from "../../lib/format.js";
import { useData, useFrame, useStream } from "../../lib/hooks.js";
import { link, route, setQuery } from "../../lib/router.js";
import { html, useId, useRef, useState } from "../../lib/ui.js";
import { Badge, Card, Empty, Fresh, Live, Loaded, Time } from "../../parts/basics.js";
import { Chart } from "../../parts/chart.js";
import { useDeviceNames } from "../../parts/choose.js";
import { Table } from "../../parts/table.js";
import { useVersionNames, VersionSelect } from "./choice.js";
import { replayFailed } from "./replay.js";
import { typeText } from "./shape.js";

const MINUTE = 60_000, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
// [text, duration, resolution]: at most 1,440 points.
export const RANGES = {
  "1h": ["last hour", HOUR, MINUTE], "6h": ["last 6 hours", 6 * HOUR, MINUTE], "1d": ["last day", DAY, MINUTE],
  "7d": ["last 7 days", 7 * DAY, 10 * MINUTE], "30d": ["last 30 days", 30 * DAY, HOUR],
};
const OUTCOMES = { completed: "good", failed: "bad", dropped: "warn", abandoned: "bad" };
const PER_PAGE = 50;
const STATS_EVERY_MS = 10_000;

export const Outcome = ({ outcome }) => html`<${Badge} tone=${OUTCOMES[outcome]}>${outcome}</${Badge}>`;
export const rangeOf = (query, usual = "1h") => RANGES[query.range] || RANGES[usual];

export function RangeSelect({ usual = "1h" }) {
  const id = useId(), value = RANGES[route.value.query.range] ? route.value.query.range : usual;
  return html`<span class="row"><label for=${id}>Time</label>
    <select id=${id} value=${value} onChange=${(event) => setQuery({ range: event.target.value, page: "" })}>
      ${Object.entries(RANGES).map(([key, [text]]) => html`<option value=${key} selected=${key === value}>${text}</option>`)}
    </select></span>`;
}

export function Runs({ app, flow, record }) {
  const { query } = route.value;
  const source = path("applications", app, "flows", flow);
  const versions = useVersionNames(app, flow);
  const [text, length, resolution] = rangeOf(query);
  const version = query.version || "";
  const page = Number(query.page) || 0;
  const asked = { page, perPage: PER_PAGE, outcome: query.outcome, flowVersion: version, triggerType: query.trigger, deviceId: query.device, since: `-${length}` };
  const list = useData((signal) => get(source + "/runs", { ...asked, since: Date.now() - length }, { signal }), [source, JSON.stringify(asked)]);
  const fits = (run) => (!asked.outcome || run.outcome === asked.outcome) && (!version || run.flowVersion === version)
    && (!asked.triggerType || run.triggerType === asked.triggerType) && (!asked.deviceId || run.deviceId === asked.deviceId);

  // Runs that have ended since the page of the list was loaded stand before it, also those that ended during the load.
  const arrived = useRef({ of: null, runs: [], count: 0 });
  const [, redraw] = useState(0);
  const draw = useFrame(() => redraw((before) => before + 1));
  if (list.value && arrived.current.of !== list.value) {
    const newest = page === 0 ? Date.parse(list.value.items[0]?.time || 0) : Infinity;
    const runs = arrived.current.runs.filter((run) => fits(run) && Date.parse(run.time) > newest);
    arrived.current = { of: list.value, runs, count: runs.length };
  }
  const stream = useStream(source + "/runStream", {
    onEvent: (run) => {
      if (!fits(run)) return;
      const kept = arrived.current;
      kept.runs = [run, ...kept.runs.slice(0, PER_PAGE - 1)];
      kept.count += 1;
      draw();
    },
    onReset: () => list.reload(),
  });

  const replay = () => replayFailed(app, flow, Date.now() - length, versions.names);
  const filters = html`<${RangeSelect} />
    <${VersionSelect} names=${versions.names} value=${version} set=${(name) => setQuery({ version: name, page: "" })} all="all" />
    <${OutcomeSelect} value=${query.outcome || ""} />
    ${["trigger", "device"].filter((name) => query[name]).map((name) => html`<span class="row"><span class="tag">${name} ${query[name]}</span>
      <button class="small" onClick=${() => setQuery({ [name]: "", page: "" })}>${`All ${name}s`}</button></span>`)}`;
  return html`<div class="card row">${filters}<${Live} stream=${stream} />
      <span class="actions"><button data-write onClick=${replay}>Replay the failed ones</button></span></div>
    <${Figures} ...${{ source, version, text, length, resolution }} />
    <${Loaded} data=${list}>${(value) => {
      const known = new Set(value.items.map((run) => run.id));
      const fresh = page === 0 ? arrived.current.runs.filter((run) => !known.has(run.id)) : [];
      return html`<${RunTable} rows=${[...fresh, ...value.items].slice(0, PER_PAGE)} total=${value.totalCount + fresh.length}
        ...${{ app, flow, page, queue: value.queue, record, behind: page > 0 ? arrived.current.count : 0 }} />`;
    }}</${Loaded}>`;
}

function OutcomeSelect({ value }) {
  const id = useId();
  return html`<span class="row"><label for=${id}>Outcome</label>
    <select id=${id} value=${value} onChange=${(event) => setQuery({ outcome: event.target.value, page: "" })}>
      <option value="" selected=${!value}>all</option>
      ${Object.keys(OUTCOMES).map((each) => html`<option value=${each} selected=${each === value}>${each}</option>`)}
    </select></span>`;
}

// Runs and failures of each span, and how long a run took. Spans without runs are not in the answer: they have 0 runs.
function Figures({ source, version, text, length, resolution }) {
  const data = useData((signal) => get(source + "/stats", { duration: length, resolution, flowVersion: version }, { signal }), [source, version, length], { every: STATS_EVERY_MS });
  return html`<${Loaded} data=${data}>${(value) => {
    const end = Date.parse(value.end), start = end - length;
    const byTime = new Map(value.metrics.map((each) => [Date.parse(each.time), each]));
    const times = [];
    for (let at = Math.ceil(start / resolution) * resolution; at <= end; at += resolution) times.push(at);
    const of = (read) => times.map((at) => read(byTime.get(at)));
    const seconds = times.map((at) => at / 1000), range = [start / 1000, end / 1000];
    const unit = resolution === MINUTE ? "minute" : `${resolution / MINUTE} minutes`;
    return html`<div class="columns">
      <${Card} title=${`Runs by ${unit}, ${text}`} actions=${html`<${Fresh} data=${data} />`}>
        <${Chart} label="Runs and failed runs" height=${200} range=${range} series=${[{ name: "Runs" }, { name: "Failed" }]}
          data=${[seconds, of((each) => each?.runCount || 0), of((each) => each?.pathsFailed || 0)]} /></${Card}>
      <${Card} title="Mean duration of a run">
        <${Chart} label="Mean duration" height=${200} range=${range} unit=" ms" series=${[{ name: "Mean duration" }]}
          data=${[value.metrics.map((each) => Date.parse(each.time) / 1000), value.metrics.map((each) => (each.runCount ? each.wallTime / each.runCount : null))]} /></${Card}>
    </div>`;
  }}</${Loaded}>`;
}

function RunTable({ app, flow, rows, total, page, queue, behind, record }) {
  const devices = useDeviceNames(app, rows.map((run) => run.deviceId));
  const columns = [
    { label: "Ended", render: (run) => html`<${Time} at=${run.time} />` },
    { label: "Outcome", render: (run) => html`<${Outcome} outcome=${run.outcome} />` },
    { label: "Version", render: (run) => run.flowVersion },
    { label: "Trigger", render: (run) => (run.triggerType ? html`<a href=${link("/applications", app, "workflows", flow, "runs", { ...route.value.query, trigger: run.triggerType, page: "" })}>${typeText(run.triggerType)}</a> <span class="quiet break">${run.triggerKey === run.deviceId ? "" : run.triggerKey}</span>` : "") },
    { label: "Device", render: (run) => run.deviceId && html`<a href=${link("/applications", app, "devices", run.deviceId)}>${devices.get(run.deviceId) || run.deviceId}</a>` },
    { label: "Steps", number: true, render: (run) => run.steps ?? "" },
    { label: "Took", number: true, render: (run) => (run.wallTime === undefined ? "" : duration(run.wallTime)) },
    { label: "Error", render: (run) => (run.outcome === "dropped" ? `${plural(run.dropped, "trigger")} dropped` : run.error && `${run.error.nodeLabel || run.error.nodeId || ""}: ${run.error.message}`) },
  ];
  const href = (run) => link("/applications", app, "workflows", flow, "runs", { run: run.id });
  const waiting = queue.waiting > 0 && html`<span>${plural(queue.waiting, "trigger")} waiting${queue.oldest && html`, the oldest since <${Time} at=${queue.oldest} />`}</span>`;
  const pages = Math.max(1, Math.ceil(total / PER_PAGE));
  return html`<${Card} flush title="Failed and sampled runs" actions=${waiting}>
    ${rows.length === 0 ? html`<${NoRuns} ...${{ app, flow, record }} />`
      : html`<${Table} label="Runs" columns=${columns} rows=${rows} href=${href} />`}
    <div class="table-foot"><span role="status">${plural(total, "record")}${behind > 0 && `, ${plural(behind, "newer run")} on the first page`}. Of good runs a sample is kept, and all while this page is open.</span>
      ${pages > 1 && html`<span class="row">
        <button class="small" disabled=${page === 0} onClick=${() => setQuery({ page: page - 1 || "" }, { push: true })}>Previous</button>
        <span>Page ${page + 1} of ${pages}</span>
        <button class="small" disabled=${page + 1 >= pages} onClick=${() => setQuery({ page: page + 1 }, { push: true })}>Next</button>
      </span>`}</div>
  </${Card}>`;
}

function NoRuns({ app, flow, record }) {
  const button = record.triggers.find((each) => each.type === "virtualButton");
  const key = button && (button.key || `${flow}-${button.meta?.id || button.meta?.uiId}`);
  const call = button && { method: "POST", path: `/applications/${app}/flows/${flow}/virtualButton`, body: { key, payload: {} } };
  return html`<${Empty} title="No run fits" call=${call}>
    <p>${button ? "Press the virtual button, or choose a longer time." : "This workflow runs when one of its triggers fires. Choose a longer time, or try it without effects."}</p>
    <div data-write><a class="button primary" href=${link("/applications", app, "workflows", flow, "try")}>Try it</a></div></${Empty}>`;
}
