// The versions of a workflow: made from the draft, compared, made the default, and deleted.

import { del, get, patch, path, post } from "../../lib/api.js";
import { exactJson } from "../../lib/exact.js";
import { count } from "../../lib/format.js";
import { useData } from "../../lib/hooks.js";
import { link, route, setQuery } from "../../lib/router.js";
import { html, useState } from "../../lib/ui.js";
import { Badge, Card, Empty, Loaded, Time } from "../../parts/basics.js";
import { confirmed } from "../../parts/dialog.js";
import { openForm } from "../../parts/form.js";
import { noted } from "../../parts/notes.js";
import { RecordTable } from "../../parts/table.js";
import { getVersion, useVersionNames, VersionSelect } from "./choice.js";
import { Diff } from "./diff.js";
import { definitionOf } from "./shape.js";

export function Versions({ app, flow, source, record, reload }) {
  const [refresh, setRefresh] = useState(0);
  const { query } = route.value;
  const list = source + "/versions";
  const one = (row) => path("applications", app, "flows", flow, "versions", row.id);
  const again = () => {
    setRefresh((before) => before + 1);
    reload();
  };
  const create = async () => {
    const made = await openForm("Create a version of the draft", {
      fields: [{ name: "version", label: "Name", required: true, placeholder: "v1.0.0" }, { name: "notes", label: "Notes", type: "longtext" }],
      button: "Create", submit: async (values) => post(list, { ...definitionOf(await get(source, {}, { exact: true })), ...values }),
    });
    if (made) again();
  };
  const runByDefault = (id, name) => confirmed({
    title: `Run ${name} by default?`, button: "Run it", text: html`Triggers then start <b>${name}</b>, unless they name another version.`,
    act: () => patch(source, { defaultVersionId: id }),
  }).then((done) => done && again());
  const enable = (row) => noted(patch(one(row), { enabled: !row.enabled }), `${row.version} is ${row.enabled ? "disabled" : "enabled"}.`).then(again);
  const remove = (row) => confirmed({
    title: "Delete this version?", text: html`<b>${row.version}</b> is deleted for good.`, act: () => del(one(row)),
  }).then((done) => done && again());
  const write = (row) => openForm(`Notes of ${row.version}`, {
    fields: [{ name: "notes", label: "Notes", type: "longtext", blank: "" }], initial: row, submit: (values) => patch(one(row), values),
  }).then((done) => done && again());

  const isDefault = (row) => row.id === record.defaultVersionId;
  const columns = [
    { label: "Version", sort: "version", render: (row) => html`<span class="flow-name">${row.version}</span>` },
    { label: "State", render: (row) => html`<span class="row">${isDefault(row) && html`<${Badge} tone="accent">default</${Badge}>`}${!row.enabled && html`<${Badge} tone="warn">disabled</${Badge}>`}</span>` },
    { label: "Notes", render: (row) => row.notes },
    { label: "Runs", number: true, render: (row) => count(row.stats.runCount) },
    { label: "Failed", number: true, render: (row) => count(row.stats.errorCount) },
    { label: "Created", sort: "creationDate", render: (row) => html`<${Time} at=${row.creationDate} />` },
    { label: html`<span class="hidden-label">Actions</span>`, render: (row) => html`<span class="row flow-actions">
      <button class="small" aria-label=${`Compare ${row.version}`} onClick=${() => setQuery({ from: row.version, to: "develop" })}>Compare</button>
      ${!isDefault(row) && html`<button data-write class="small" aria-label=${`Make default: ${row.version}`} onClick=${() => runByDefault(row.id, row.version)}>Make default</button>`}
      <button data-write class="small" aria-label=${`Notes of ${row.version}`} onClick=${() => write(row)}>Notes</button>
      <button data-write class="small" aria-label=${`${row.enabled ? "Disable" : "Enable"} ${row.version}`} onClick=${() => enable(row)}>${row.enabled ? "Disable" : "Enable"}</button>
      ${!isDefault(row) && html`<button class="small danger" aria-label=${`Delete ${row.version}`} onClick=${() => remove(row)}>Delete</button>`}</span>` },
  ];
  const empty = html`<${Empty} title="There are no versions yet" call=${{ method: "POST", path: list, body: { version: "v1", notes: "The first one.", ...definitionOf(record) } }}>
    <p>A version is a copy of the draft that does not change. Make one the default, and the draft can be changed without effect.</p></${Empty}>`;
  return html`
    <div class="card spread"><span>${record.defaultVersionId ? "A version runs by default, and the draft only where it is named." : html`The draft (<code>develop</code>) runs by default.`}</span>
      <span class="row">${record.defaultVersionId && html`<button data-write onClick=${() => runByDefault(null, "the draft")}>Run the draft by default</button>`}
        <button class="primary" data-create onClick=${create}>Create a version</button></span></div>
    <${Compare} ...${{ app, flow, source, query, refresh }} />
    <${RecordTable} noun="version" source=${list} columns=${columns} search="version" sortField="creationDate" sortDirection="desc" refresh=${refresh} empty=${empty}
      href=${(row) => link("/applications", app, "workflows", flow, { version: row.version })} />`;
}

// What is different between two versions, which the address names.
function Compare({ app, flow, source, query, refresh }) {
  const { names } = useVersionNames(app, flow, refresh);
  const { from, to } = query;
  const read = (name, signal) => getVersion(source, name, { signal, exact: true });
  const data = useData((signal) => (from && to ? Promise.all([read(from, signal), read(to, signal)]) : Promise.resolve(null)), [source, from, to]);
  if (!from || !to) return null;
  const text = (version) => exactJson(definitionOf(version), 2);
  return html`<${Card} title="Compare" actions=${html`<button class="small" onClick=${() => setQuery({ from: "", to: "" })}>Close</button>`}>
    <div class="stack">
      <div class="row"><${VersionSelect} label="From" names=${names} value=${from} set=${(name) => setQuery({ from: name })} />
        <${VersionSelect} label="to" names=${names} value=${to} set=${(name) => setQuery({ to: name })} />
        <button class="small" onClick=${() => setQuery({ from: to, to: from })}>Swap</button></div>
      <${Loaded} data=${data}>${(both) => both && html`<${Diff} before=${text(both[0])} after=${text(both[1])} label=${`Lines that differ between ${from} and ${to}`} />`}</${Loaded}>
    </div>
  </${Card}>`;
}
