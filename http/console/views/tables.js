// The data tables of an application.

import { path, post } from "../lib/api.js";
import { go, link } from "../lib/router.js";
import { html, useState } from "../lib/ui.js";
import { Empty, Page, Time } from "../parts/basics.js";
import { openDialog } from "../parts/dialog.js";
import { Form } from "../parts/form.js";
import { RecordTable } from "../parts/table.js";
import { columnOf, ColumnsEditor, newColumn } from "./table/columns.js";

const LEAD = "Rows with typed columns: lists of parts, thresholds, places; what workflows look up and write down.";
const EXAMPLE = { name: "parts", columns: [{ name: "part", dataType: "string", constraint: "unique" }, { name: "pieces", dataType: "number", constraint: "required" }] };
export const NAME_FIELDS = [
  { name: "name", label: "Name", required: true },
  { name: "description", label: "Description", type: "longtext", rows: 2, blank: "" },
];

export function Tables({ app }) {
  const source = path("applications", app, "data-tables");
  const href = (row) => link("/applications", app, "tables", row.id);
  const create = async () => {
    const made = await openDialog("Create a data table", (close) => html`<${TableForm} source=${source} close=${close} />`);
    if (made) go(href(made));
  };
  const button = html`<button class="primary" data-create onClick=${create}>Create a data table</button>`;
  const columns = [
    { label: "Name", sort: "name", render: (row) => row.name },
    { label: "Columns", render: (row) => row.columns.map((each) => each.name).join(", ") },
    { label: "Description", render: (row) => row.description },
    { label: "Changed", sort: "lastUpdated", render: (row) => html`<${Time} at=${row.lastUpdated} />` },
    { label: "Created", sort: "creationDate", render: (row) => html`<${Time} at=${row.creationDate} />` },
  ];
  const empty = html`<${Empty} title="There are no data tables yet" call=${{ method: "POST", path: source, body: EXAMPLE }}>
    <div>${button}</div></${Empty}>`;
  return html`<${Page} title="Data tables" lead=${LEAD} actions=${button}>
    <${RecordTable} noun="data table" source=${source} columns=${columns} href=${href} empty=${empty} />
  </${Page}>`;
}

function TableForm({ source, close }) {
  const [columns, setColumns] = useState([newColumn()]);
  const submit = (values) => {
    const given = columns.filter((each) => each.name.trim() || each.defaultValue).map(columnOf);
    return post(source, { ...values, columns: given });
  };
  return html`<${Form} fields=${NAME_FIELDS} submit=${submit} button="Create" close=${close}
    extra=${html`<${ColumnsEditor} value=${columns} set=${setColumns} />`} />`;
}
