// The columns of a data table: listed, added and removed, and given for a new table.

import { del, path, post } from "../../lib/api.js";
import { html, useId } from "../../lib/ui.js";
import { Card } from "../../parts/basics.js";
import { confirmed } from "../../parts/dialog.js";
import { openForm } from "../../parts/form.js";
import { Table } from "../../parts/table.js";
import { textOf, valueOf } from "./values.js";

const TYPES = ["string", "number", "boolean"];
const CONSTRAINTS = ["optional", "required", "unique"];
const DEFAULT_HINT = 'For rows that are inserted without a value. "" is an empty text.';

// The body of the API for a column whose default is a text.
export function columnOf({ name, dataType, constraint, defaultValue }) {
  const value = valueOf(dataType, defaultValue ?? "");
  return { name, dataType, constraint, ...(value === null ? {} : { defaultValue: value }) };
}

export function Columns({ app, table, reload }) {
  const target = path("applications", app, "data-tables", table.id, "column");
  const add = async () => {
    const fields = [
      { name: "name", label: "Name", required: true },
      { name: "dataType", label: "Type", type: "select", options: TYPES },
      { name: "constraint", label: "Constraint", type: "select", options: CONSTRAINTS, hint: "Rows that exist are null in the new column, whatever its constraint and default." },
      { name: "defaultValue", label: "Default", hint: DEFAULT_HINT },
    ];
    const submit = (values) => post(target, columnOf(values));
    if (await openForm("Add a column", { fields, submit, button: "Add" })) reload();
  };
  const remove = async (column) => {
    const done = await confirmed({
      title: "Remove this column?", button: "Remove", typed: column.name,
      text: html`<b>${column.name}</b> is removed with its values in all rows. They are lost.`,
      act: () => del(target, undefined, { query: { columnName: column.name } }),
    });
    if (done) reload();
  };
  const columns = [
    { label: "Name", render: (row) => row.name },
    { label: "Type", render: (row) => row.dataType },
    { label: "Constraint", render: (row) => row.constraint },
    { label: "Default", render: (row) => (row.defaultValue === undefined || row.defaultValue === null ? html`<span class="quiet">none</span>` : html`<code>${textOf(row.defaultValue)}</code>`) },
    { label: html`<span class="hidden-label">Actions</span>`, render: (row) => html`<button class="small danger" onClick=${() => remove(row)}>Remove<span class="hidden-label"> ${row.name}</span></button>` },
  ];
  return html`<${Card} flush title="Columns" actions=${html`<button class="primary" data-create onClick=${add}>Add a column</button>`}>
    ${table.columns.length ? html`<${Table} label="Columns" columns=${columns} rows=${table.columns} rowKey=${(row) => row.name} />`
      : html`<p class="empty">The table has no columns yet. Rows have only what the server sets: id, createdAt and updatedAt.</p>`}
  </${Card}>`;
}

// The columns of a new table as a form: `value` is [{name, dataType, constraint, defaultValue}], the default as a text.
export function ColumnsEditor({ value, set }) {
  const id = useId();
  const change = (at, name, text) => set(value.map((each, index) => (index === at ? { ...each, [name]: text } : each)));
  const choice = (at, name, options) => html`<select aria-label=${`${name === "dataType" ? "Type" : "Constraint"} of column ${at + 1}`} value=${value[at][name]}
    onChange=${(event) => change(at, name, event.target.value)}>${options.map((each) => html`<option value=${each} selected=${each === value[at][name]}>${each}</option>`)}</select>`;
  return html`<fieldset class="group column-editor"><legend>Columns</legend>
    ${value.map((column, at) => html`<div class="row" key=${at}>
      <input aria-label=${`Name of column ${at + 1}`} placeholder="Name" value=${column.name} onInput=${(event) => change(at, "name", event.target.value)} />
      ${choice(at, "dataType", TYPES)}${choice(at, "constraint", CONSTRAINTS)}
      <input aria-label=${`Default of column ${at + 1}`} placeholder="Default" aria-describedby=${id} value=${column.defaultValue} onInput=${(event) => change(at, "defaultValue", event.target.value)} />
      <button type="button" class="small" aria-label=${`Leave out column ${at + 1}`} onClick=${() => set(value.filter((each, index) => index !== at))}>Leave out</button>
    </div>`)}
    <div><button type="button" class="small" onClick=${() => set([...value, newColumn()])}>Another column</button></div>
    <p class="quiet" id=${id}>${DEFAULT_HINT}</p>
  </fieldset>`;
}

export const newColumn = () => ({ name: "", dataType: "string", constraint: "optional", defaultValue: "" });
