// A data table: its rows, its columns, and the import of a file.

import { mayChange } from "../lib/access.js";
import { del, get, patch, path } from "../lib/api.js";
import { useData } from "../lib/hooks.js";
import { go, link, route } from "../lib/router.js";
import { html } from "../lib/ui.js";
import { Loaded, Page, Tabs } from "../parts/basics.js";
import { confirmed } from "../parts/dialog.js";
import { openForm } from "../parts/form.js";
import { Columns } from "./table/columns.js";
import { Import } from "./table/import.js";
import { Rows } from "./table/rows.js";
import { NAME_FIELDS } from "./tables.js";

export function DataTable({ app, table: id }) {
  const source = path("applications", app, "data-tables", id);
  const data = useData((signal) => get(source, {}, { signal, exact: true }), [source]);
  const tab = route.value.query.tab || "rows";
  const home = link("/applications", app, "tables");
  const at = (name) => link("/applications", app, "tables", id, { tab: name });
  const rename = async () => {
    if (await openForm("Change this data table", { fields: NAME_FIELDS, initial: data.value, changesOnly: true, submit: (values) => patch(source, values) })) data.reload();
  };
  const remove = async () => {
    const done = await confirmed({
      title: "Delete this data table?", typed: data.value.name,
      text: html`<b>${data.value.name}</b> is deleted for good, with all its rows.`, act: () => del(source),
    });
    if (done) go(home);
  };
  const actions = data.value && html`<button data-write onClick=${rename}>Change</button><button class="danger" onClick=${remove}>Delete</button>`;
  return html`<${Page} trail=${[["Data tables", home]]} title=${data.value?.name || "Data table"} lead=${data.value?.description} actions=${actions} of=${data}>
    <${Tabs} label="Parts of the data table" current=${tab} items=${[["rows", "Rows", at()], ["columns", "Columns", at("columns")], ...(mayChange() ? [["import", "Import", at("import")]] : [])]} />
    <${Loaded} data=${data}>${(table) => {
      if (tab === "columns") return html`<${Columns} app=${app} table=${table} reload=${data.reload} />`;
      if (tab === "import") return html`<${Import} app=${app} table=${table} />`;
      return html`<${Rows} app=${app} table=${table} />`;
    }}</${Loaded}>
  </${Page}>`;
}
