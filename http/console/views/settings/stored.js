// What the server stores and does not run: notebooks, resource jobs and deployments, as lists and as JSON.

import { del, get, path } from "../../lib/api.js";
import { useData } from "../../lib/hooks.js";
import { link, route, setQuery } from "../../lib/router.js";
import { html } from "../../lib/ui.js";
import { Badge, Card, Empty, Loaded, Notice, Tabs, Time } from "../../parts/basics.js";
import { confirmed } from "../../parts/dialog.js";
import { Json } from "../../parts/json.js";
import { RecordTable } from "../../parts/table.js";

const changed = { label: "Changed", sort: "lastUpdated", render: (row) => html`<${Time} at=${row.lastUpdated} />` };
const described = { label: "Description", render: (row) => row.description || "" };
const name = { label: "Name", sort: "name", render: (row) => row.name };
const device = { label: "Device", render: (row) => html`<code>${row.deviceId}</code>` };
const KINDS = {
  notebooks: { title: "Notebooks", noun: "notebook", path: ["notebooks"], search: "name", columns: [name, described, changed], deletes: true },
  jobs: { title: "Resource jobs", noun: "resource job", path: ["resource-jobs"], search: "name", columns: [name, described, changed], deletes: true },
  edge: {
    title: "Edge deployments", noun: "edge deployment", path: ["edge", "deployments"], search: "",
    columns: [device, { label: "Workflow", render: (row) => html`<code>${row.flowId}</code>` }, { label: "Desired version", render: (row) => row.desiredVersion || "none" }],
  },
  embedded: {
    title: "Embedded deployments", noun: "embedded deployment", path: ["embedded", "deployments"], search: "",
    columns: [device, { label: "Workflows", number: true, render: (row) => Object.keys(row.flows || {}).length }],
  },
};

export function Stored({ app }) {
  const { query } = route.value;
  const current = query.kind in KINDS ? query.kind : "notebooks";
  const kind = KINDS[current];
  const source = path("applications", app, ...kind.path);
  const address = (key, record) => link("/applications", app, "settings", "stored", { kind: key, record });
  return html`<${Notice}>The server keeps these records, and runs none of them yet. Programs create them by the API.</${Notice}>
    <div><${Tabs} label="Kinds" current=${current} items=${Object.entries(KINDS).map(([key, each]) => [key, each.title, address(key)])} /></div>
    ${query.record && html`<${Record} key=${query.record} kind=${kind} source=${`${source}/${encodeURIComponent(query.record)}`} />`}
    <${RecordTable} key=${current + (query.record || "")} noun=${kind.noun} source=${source} search=${kind.search} columns=${kind.columns}
      href=${(row) => address(current, row.id)}
      empty=${html`<${Empty} title=${`There are no ${kind.noun}s`} call=${{ path: source }}><p>Programs create them by the API.</p></${Empty}>`} />`;
}

// A record as JSON.
function Record({ kind, source }) {
  const data = useData((signal) => get(source, {}, { signal }), [source]);
  const close = () => setQuery({ record: "" });
  const remove = async (record) => {
    const text = html`<b>${record.name}</b> is deleted for good.`;
    if (await confirmed({ title: `Delete this ${kind.noun}?`, text, act: () => del(source) })) close();
  };
  return html`<${Loaded} data=${data}>${(record) => html`<${Card} title=${record.name || html`<${Badge}>${record.id}</${Badge}>`}
      actions=${html`${kind.deletes && html`<button class="danger" onClick=${() => remove(record)}>Delete</button>`}<button onClick=${close}>Close</button>`}>
    <${Json} value=${record} /></${Card}>`}</${Loaded}>`;
}
