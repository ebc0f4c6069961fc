// Globals: named JSON values, which workflows and pages of the application read.

import { patch, path } from "../../lib/api.js";
import { html } from "../../lib/ui.js";
import { Badge, Card, Empty } from "../../parts/basics.js";
import { confirmed } from "../../parts/dialog.js";
import { openForm } from "../../parts/form.js";
import { Table } from "../../parts/table.js";

const FIELDS = [
  { name: "key", label: "Key", required: true, hint: "Letters, digits, _ and -" },
  { name: "json", label: "Value", type: "longtext", required: true, placeholder: '"text", 21.5 or {"a": 1}', hint: "JSON" },
  { name: "description", label: "Description", blank: "" },
  { name: "cloudOnly", label: "Only for workflows on this server, not on devices", type: "checkbox" },
];

export function Globals({ app, application, reload }) {
  const source = path("applications", app, "globals");
  const globals = application.globals || [];
  const edit = async (each) => {
    const done = await openForm(each ? `Change ${each.key}` : "Create a global", {
      fields: each ? FIELDS.slice(1) : FIELDS, initial: each, changesOnly: Boolean(each), submit: (values) => {
        if (!each && globals.some(({ key }) => key === values.key)) throw new Error(`key: there is a global ${values.key} already; change that one.`);
        return patch(source, [{ key: each?.key, ...values }]);
      },
    });
    if (done) reload();
  };
  const remove = async (each) => {
    const text = html`<b>${each.key}</b> is deleted. Workflows that read it get nothing.`;
    if (await confirmed({ title: "Delete this global?", text, act: () => patch(source, [{ key: each.key, json: null }]) })) reload();
  };
  const create = html`<button data-write class="primary" data-create onClick=${() => edit(null)}>Create a global</button>`;
  return html`<${Card} flush title="Globals" actions=${globals.length > 0 && create}>
    ${globals.length === 0 ? html`<${Empty} title="There are no globals yet" call=${{ method: "PATCH", path: source, body: [{ key: "maxTemperature", json: "8" }] }}>
        <p>A global is a named value, which workflows and pages read as <code>globals.KEY</code>.</p><div>${create}</div></${Empty}>`
      : html`<${Table} label="Globals" rows=${globals} rowKey=${(each) => each.key} columns=${[
        { label: "Key", render: (each) => html`<code>${each.key}</code>` },
        { label: "Value", render: (each) => html`<code class="break">${each.json}</code>` },
        { label: "Description", render: (each) => each.description || "" },
        { label: "Use", render: (each) => (each.cloudOnly ? html`<${Badge}>this server only</${Badge}>` : "") },
        { label: html`<span class="hidden-label">Actions</span>`, render: (each) => html`<span class="row"><button data-write class="small" onClick=${() => edit(each)} aria-label=${`Change ${each.key}`}>Change</button>
            <button class="small danger" onClick=${() => remove(each)} aria-label=${`Delete ${each.key}`}>Delete</button></span>` },
      ]} />`}
  </${Card}>`;
}
