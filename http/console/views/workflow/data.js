// What a workflow keeps and uses beside its nodes: globals, storage entries, custom nodes.

import { del, get, patch } from "../../lib/api.js";
import { parseExact } from "../../lib/exact.js";
import { bytes, plural } from "../../lib/format.js";
import { useData } from "../../lib/hooks.js";
import { link } from "../../lib/router.js";
import { html } from "../../lib/ui.js";
import { Card, Empty, Fresh, Loaded } from "../../parts/basics.js";
import { confirmed } from "../../parts/dialog.js";
import { openForm } from "../../parts/form.js";
import { Json } from "../../parts/json.js";
import { Table } from "../../parts/table.js";

const EVERY_MS = 10_000;

export function Data({ app, flow, source, record }) {
  return html`<${Storage} source=${source} /><${Globals} ...${{ app, flow, globals: record.globals }} /><${CustomNodes} ...${{ app, nodes: record.customNodes || [] }} />`;
}

function Storage({ source }) {
  const target = source + "/storage";
  const data = useData((signal) => Promise.all([get(target, {}, { signal, exact: true }), get(target + "-metadata", {}, { signal })]), [target], { every: EVERY_MS });
  const set = (key, value) => openForm(key === undefined ? "Set a value" : `Change ${key}`, {
    fields: [...(key === undefined ? [{ name: "key", label: "Key", required: true }] : []), { name: "value", label: "Value", type: "json", required: true, hint: 'JSON; a text stands in quotes, such as "on".' }],
    initial: { value }, submit: (given) => patch(target, { key, ...given }),
  }).then((done) => done && data.reload());
  const remove = (key) => confirmed({ title: "Remove this value?", text: html`<b>${key}</b> is removed for good.`, button: "Remove", act: () => patch(target, { key }) })
    .then((done) => done && data.reload());
  const clear = () => confirmed({
    title: "Remove all values?", text: "All storage entries are removed for good. Latches and the values that nodes compare are reset too.", button: "Remove all", act: () => del(target),
  }).then((done) => done && data.reload());
  const columns = [
    { label: "Key", render: ([key]) => html`<span class="flow-name">${key}</span>` },
    { label: "Value", render: ([, value]) => html`<${Json} value=${value} />` },
    { label: html`<span class="hidden-label">Actions</span>`, render: ([key, value]) => html`<span class="row flow-actions"><button data-write class="small" aria-label=${`Change ${key}`} onClick=${() => set(key, value)}>Change</button>
      <button class="small danger" aria-label=${`Remove ${key}`} onClick=${() => remove(key)}>Remove</button></span>` },
  ];
  return html`<${Loaded} data=${data}>${([entries, size]) => html`<${Card} flush title="Storage entries"
      actions=${html`<${Fresh} data=${data} /><button data-write class="small" onClick=${() => set()}>Set a value</button>${size.keysCount > 0 && html`<button class="small danger" onClick=${clear}>Remove all</button>`}`}>
    ${size.keysCount === 0 ? html`<${Empty} title="Nothing is stored" call=${{ method: "PATCH", path: target, body: { key: "count", value: 1 } }}><p>Runs keep values here with the nodes that store and get values. All versions share them.</p></${Empty}>`
      : html`<${Table} label="Storage entries" columns=${columns} rows=${Object.entries(entries)} rowKey=${([key]) => key} />
        <div class="table-foot"><span role="status">${plural(size.keysCount, "entry", "entries")}, ${bytes(size.memoryUsed)}</span></div>`}
  </${Card}>`}</${Loaded}>`;
}

function Globals({ app, flow, globals }) {
  const columns = [
    { label: "Key", render: (each) => html`<span class="flow-name">${each.key}</span>` },
    { label: "Value", render: (each) => html`<${Json} value=${parseExact(each.json)} />` },
  ];
  return html`<${Card} flush title="Globals of the draft" actions=${html`<a data-write class="button small" href=${link("/applications", app, "workflows", flow, "edit")}>Edit</a>`}>
    ${globals.length ? html`<${Table} label="Globals" columns=${columns} rows=${globals} rowKey=${(each) => each.key} />`
      : html`<p class="empty quiet">There are none. A global is a value that every node reads as <code>globals.KEY</code>.</p>`}</${Card}>`;
}

function CustomNodes({ app, nodes }) {
  const columns = [
    { label: "Name", render: (each) => each.name },
    { label: "Version", render: (each) => each.version },
    { label: "Category", render: (each) => each.category },
    { label: "Description", render: (each) => each.shortDescription || each.description },
  ];
  return html`<${Card} flush title="Custom nodes that the draft uses">
    ${nodes.length ? html`<${Table} label="Custom nodes" columns=${columns} rows=${nodes} rowKey=${(each) => each.id + each.version} href=${(each) => link("/applications", app, "workflows", each.id)} />`
      : html`<p class="empty quiet">There are none. Workflows of the class customNode are nodes for others.</p>`}</${Card}>`;
}
