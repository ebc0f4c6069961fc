// The rows of a data table: a page of them from the server, sorted and selected there; added, changed, deleted, exported.

import { mayChange } from "../../lib/access.js";
import { patch, path, post } from "../../lib/api.js";
import { exactJson, parseExact } from "../../lib/exact.js";
import { count, plural } from "../../lib/format.js";
import { useData } from "../../lib/hooks.js";
import { link, route, setQuery } from "../../lib/router.js";
import { html, useEffect, useState } from "../../lib/ui.js";
import { Empty, Problem, Time } from "../../parts/basics.js";
import { confirmed } from "../../parts/dialog.js";
import { openForm } from "../../parts/form.js";
import { openJob } from "../../parts/job.js";
import { note, noted } from "../../parts/notes.js";
import { Table } from "../../parts/table.js";
import { Cell } from "./cell.js";
import { QueryForm } from "./query.js";
import { textOf, valueOf } from "./values.js";

const PER_PAGE = 50;
const DELETED_AT_ONCE = 10_000; // the most that one call deletes

// The calls about the rows of a table. Whole numbers of any size arrive and are sent as they are.
export function rowCalls(app, table) {
  const source = path("applications", app, "data-tables", table, "rows");
  return {
    source,
    page: (query, body, signal) => post(source + "/query", body, { query, signal, exact: true }),
    insert: (row) => post(source, row),
    change: (id, row) => patch(`${source}/${id}`, row),
    remove: (query) => post(source + "/delete", query, { query: { limit: DELETED_AT_ONCE } }),
  };
}

export function Rows({ app, table }) {
  const { query } = route.value;
  const calls = rowCalls(app, table.id);
  const [selected, select] = useState(new Set());
  const page = Number(query.page) || 0;
  const wanted = readQuery(query.query);
  const order = { sortColumn: query.sort, sortDirection: query.direction };
  const asked = { ...order, limit: PER_PAGE, offset: page * PER_PAGE };
  const data = useData((signal) => (wanted.error ? Promise.reject(wanted.error) : calls.page(asked, wanted.value || {}, signal)), [calls.source, query.query, JSON.stringify(asked)]);
  const list = data.value;
  // What is selected is on the page that is shown. A row that is changed may leave it.
  useEffect(() => select(new Set()), [query.query, JSON.stringify(asked)]);
  useEffect(() => { if (list) select((before) => new Set(list.items.map((row) => row.id).filter((id) => before.has(id)))); }, [list]);
  // The last page may have gone, as by a deletion.
  useEffect(() => { if (page > 0 && list && page * PER_PAGE >= list.totalCount) setQuery({ page: Math.max(0, Math.ceil(list.totalCount / PER_PAGE) - 1) || "" }); }, [list]);
  const current = !data.loading && !data.error; // the list is the one that the address names
  const reload = () => {
    select(new Set());
    data.reload();
  };
  const setWanted = (value) => setQuery({ query: value && Object.keys(value).length ? exactJson(value) : "", page: "" });
  const sort = {
    // What the address says, since rows that come late are still in the order before.
    field: query.sort || list?.sortColumn, direction: query.sort ? query.direction || "asc" : list?.sortDirection,
    by: (name) => setQuery({ sort: name, direction: sort.field === name && sort.direction === "asc" ? "desc" : "asc", page: "" }),
  };
  const change = async (row, changes) => {
    await calls.change(row.id, changes);
    data.reload();
  };
  const add = async () => {
    const row = await openForm("Add a row", { fields: rowFields(table.columns), button: "Add", submit: (texts) => calls.insert(rowOf(table.columns, texts)) });
    if (row) reload();
  };
  const edit = async (row) => {
    const before = Object.fromEntries(table.columns.map((each) => [each.name, textOf(row[each.name])]));
    const done = await openForm("Change this row", {
      fields: rowFields(table.columns, true), initial: before,
      submit: (texts) => calls.change(row.id, rowOf(table.columns, texts, before)),
    });
    if (done) reload();
  };
  const exportRows = () => noted(startExport());
  const startExport = async () => {
    const body = { queryOptions: { sortColumn: query.sort, sortDirection: query.direction }, ...(wanted.value ? { query: wanted.value } : {}) };
    const { jobId } = await post(calls.source + "/export", body);
    await openJob("Export of the rows", app, jobId);
  };
  const removeSelected = async () => {
    const done = await confirmed({
      title: `Delete ${plural(selected.size, "row")}?`, text: "The selected rows are deleted for good.",
      act: () => calls.remove({ $or: [...selected].map((id) => ({ id })) }),
    });
    if (done) reload();
  };
  const removeMatching = async () => {
    await confirmed({
      title: `Delete all ${plural(list.totalCount, "row")} that match?`, typed: table.name,
      text: html`All rows that match <code class="break">${exactJson(wanted.value)}</code> when this runs are deleted for good, also those on other pages.`,
      act: async (open) => {
        let removed = 0, last = DELETED_AT_ONCE;
        try {
          while (last === DELETED_AT_ONCE && open()) {
            ({ removed: last } = await calls.remove(wanted.value));
            removed += last;
          }
        } finally {
          if (removed) note(`${plural(removed, "row")} deleted.${last === DELETED_AT_ONCE ? " There may be more that match." : ""}`);
          reload();
        }
      },
    });
  };
  const truncate = async () => {
    const done = await confirmed({
      title: "Delete all rows?", typed: table.name, text: html`All rows of <b>${table.name}</b> are deleted for good. The table and its columns stay.`,
      act: () => post(calls.source + "/truncate"),
    });
    if (done) reload();
  };
  const columns = [
    ...table.columns.map((column) => ({
      label: column.name, sort: column.name, number: column.dataType === "number",
      render: (row) => html`<${Cell} column=${column} value=${row[column.name]} save=${mayChange() && ((value) => change(row, { [column.name]: value }))} />`,
    })),
    { label: "Created", sort: "createdAt", render: (row) => html`<${Time} at=${row.createdAt} />` },
    { label: "Changed", sort: "updatedAt", render: (row) => html`<${Time} at=${row.updatedAt} />` },
    { label: html`<span class="hidden-label">Actions</span>`, render: (row) => html`<button data-write class="small" onClick=${() => edit(row)}>Edit<span class="hidden-label"> row ${row.id}</span></button>` },
  ];
  const nothing = list && list.totalCount === 0 && !wanted.value;
  const pages = list ? Math.max(1, Math.ceil(list.totalCount / PER_PAGE)) : 1;
  return html`<section class="card flush">
    <div class="filters">
      <button class="primary small" data-create onClick=${add}>Add a row</button>
      <button class="small" onClick=${exportRows}>Export as CSV</button>
      ${wanted.value ? html`<button class="small danger" disabled=${!current || !list.totalCount} onClick=${removeMatching}>Delete all that match</button>`
        : html`<button class="small danger" disabled=${!current || !list.totalCount} onClick=${truncate}>Delete all rows</button>`}
      ${list?.totalCount > 0 && html`<button class="small danger" disabled=${!selected.size} onClick=${removeSelected}>Delete ${count(selected.size)} selected</button>`}
    </div>
    ${!nothing && html`<${QueryForm} columns=${table.columns} value=${wanted.value} set=${setWanted} />`}
    <${Problem} error=${data.error} retry=${data.reload} />
    ${!list && !data.error && html`<p class="empty quiet" role="status">Loading.</p>`}
    ${nothing && html`<${Empty} title="There are no rows yet" call=${{ method: "POST", path: calls.source, body: exampleRow(table.columns) }}>
      <p data-write>Add a row, or <a href=${link("/applications", app, "tables", table.id, { tab: "import" })}>import a CSV file</a>.</p></${Empty}>`}
    ${list && !nothing && html`<div class=${data.loading || data.error ? "busy" : ""}>
      ${list.items.length === 0 ? html`<p class="empty">No row matches. Change the query to see more.</p>`
        : html`<${Table} label="Rows" columns=${columns} rows=${list.items} sort=${sort} selected=${selected} select=${mayChange() && select} />`}
      <div class="table-foot"><span class="row"><span role="status">${plural(list.totalCount, "row")}</span>
          <button class="small" onClick=${reload}>Read again</button><span>read <${Time} at=${data.at} age /></span></span>
        ${pages > 1 && html`<span class="row">
          <button class="small" disabled=${page === 0} onClick=${() => turn(page - 1)}>Previous</button>
          <span>Page ${count(page + 1)} of ${count(pages)}</span>
          <button class="small" disabled=${page + 1 >= pages} onClick=${() => turn(page + 1)}>Next</button></span>`}
      </div></div>`}
  </section>`;
}

const turn = (page) => setQuery({ page: page || "" }, { push: true });

function readQuery(text) {
  try {
    return { value: text ? parseExact(text) : null };
  } catch (error) {
    return { value: null, error: new Error(`The query in the address is not JSON: ${error.message}`) };
  }
}

// A field for each column. `known`: the row exists, so what is empty becomes null and not the default.
function rowFields(columns, known) {
  return columns.map(({ name, dataType, constraint, defaultValue }) => {
    const empty = !known && textOf(defaultValue) ? `empty: ${textOf(defaultValue)}` : constraint === "required" ? "" : "empty: null";
    const hint = [dataType, constraint, empty].filter(Boolean).join(", ") + (dataType === "string" ? ', "": an empty text' : "");
    const field = { name, label: name, hint, blank: "", required: constraint === "required" && !textOf(defaultValue) };
    const nothing = !known && textOf(defaultValue) ? `the default, ${textOf(defaultValue)}` : "null";
    if (dataType === "boolean") return { ...field, type: "select", options: [["", nothing], ["true", "true"], ["false", "false"]] };
    return dataType === "string" ? { ...field, type: "longtext", rows: 1 } : field;
  });
}

// The body for a row from the texts of a form: without `before` a new row, whose empty fields are left out so that
// defaults fill them; otherwise what has changed.
function rowOf(columns, texts, before) {
  const changed = columns.filter(({ name }) => (before ? texts[name] !== before[name] : texts[name] !== ""));
  return Object.fromEntries(changed.map(({ name, dataType }) => [name, valueOf(dataType, texts[name])]));
}

const exampleRow = (columns) => Object.fromEntries(columns.map(({ name, dataType }) => [name, { string: "a text", number: 1, boolean: true }[dataType]]));
