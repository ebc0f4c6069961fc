// The failures of a workflow in a time, grouped by node and message: the most frequent first.

import { get } from "../../lib/api.js";
import { count, plural } from "../../lib/format.js";
import { useData } from "../../lib/hooks.js";
import { link, route, setQuery } from "../../lib/router.js";
import { html } from "../../lib/ui.js";
import { Badge, Card, Empty, Fresh, Loaded, Time } from "../../parts/basics.js";
import { Table } from "../../parts/table.js";
import { useVersionNames, VersionSelect } from "./choice.js";
import { replayFailed } from "./replay.js";
import { RangeSelect, rangeOf } from "./runs.js";

const READ_MAX = 200;
const EVERY_MS = 30_000;
const BAD = ["failed", "abandoned", "dropped"];

export function Errors({ app, flow, source }) {
  const { query } = route.value;
  const [text, length] = rangeOf(query, "1d");
  const version = query.version || "";
  const versions = useVersionNames(app, flow);
  const load = (signal) => Promise.all(BAD.map((outcome) => get(source + "/runs", { outcome, flowVersion: version, perPage: READ_MAX, since: Date.now() - length }, { signal })));
  const data = useData(load, [source, version, length], { every: EVERY_MS });
  const replay = () => replayFailed(app, flow, Date.now() - length, versions.names);
  return html`
    <div class="card row"><${RangeSelect} usual="1d" />
      <${VersionSelect} names=${versions.names} value=${version} set=${(name) => setQuery({ version: name })} all="all" />
      <${Fresh} data=${data} /><button data-write onClick=${replay}>Replay the failed runs</button></div>
    <${Loaded} data=${data}>${(lists) => html`<${Groups} ...${{ app, flow, source, text, lists }} />`}</${Loaded}>`;
}

function Groups({ app, flow, source, text, lists }) {
  const runs = lists.flatMap((list) => list.items).sort((one, other) => Date.parse(other.time) - Date.parse(one.time));
  const total = lists.reduce((sum, list) => sum + list.totalCount, 0);
  const groups = grouped(runs);
  if (!groups.length) {
    return html`<section class="card flush"><${Empty} title="Nothing failed" call=${{ path: source + "/errors" }}><p>No failed run of the ${text} is kept.</p></${Empty}></section>`;
  }
  const columns = [
    { label: "Node", render: (group) => (group.nodeId ? html`<a href=${link("/applications", app, "workflows", flow, { version: group.version, node: group.nodeId })}>${group.nodeLabel || group.nodeId}</a>` : html`<span class="quiet">none</span>`) },
    { label: "Message", render: (group) => html`<${Badge} tone="bad">${group.name}</${Badge}> ${group.message}${group.messages.size > 1 && html`<div class="quiet">${group.messages.size} messages that differ in numbers only</div>`}` },
    { label: "Times", number: true, render: (group) => count(group.times) },
    { label: "Versions", render: (group) => [...group.versions].join(", ") },
    { label: "First", render: (group) => html`<${Time} at=${group.first} />` },
    { label: "Last", render: (group) => html`<${Time} at=${group.last} age />` },
    { label: html`<span class="hidden-label">Actions</span>`, render: (group) => html`<a class="button small" href=${link("/applications", app, "workflows", flow, "runs", { run: group.run })}>Last run</a>` },
  ];
  const shown = runs.length < total ? `Of the newest ${plural(runs.length, "failure")}; ${count(total)} are kept.` : `Of ${plural(total, "failure")}.`;
  return html`<${Card} flush title=${`Errors of the ${text}`}>
    <${Table} label="Errors by node and message" columns=${columns} rows=${groups} rowKey=${(group) => group.key} />
    <div class="table-foot"><span role="status">${shown}</span></div></${Card}>`;
}

const VARIABLE = /[0-9a-f]{24}|\d+(\.\d+)?/gi;

// Runs of one node with one message are a group; messages that differ only in numbers and ids count as one.
// `runs` are the newest first, and the newest message is shown.
function grouped(runs) {
  const groups = new Map();
  for (const run of runs) {
    const error = run.error || { name: run.outcome, message: run.dropped ? `${plural(run.dropped, "trigger")} dropped.` : "" };
    const key = JSON.stringify([error.nodeId, error.name, error.message.replace(VARIABLE, "0")]);
    const group = groups.get(key);
    if (group) {
      group.times += 1;
      group.messages.add(error.message);
      group.versions.add(run.flowVersion);
      group.first = run.time;
    } else {
      groups.set(key, { key, ...error, times: 1, messages: new Set([error.message]), versions: new Set([run.flowVersion]), version: run.flowVersion, first: run.time, last: run.time, run: run.id });
    }
  }
  return [...groups.values()].sort((one, other) => other.times - one.times);
}
