// The devices of an application: a list that the server pages, sorts and searches, and changes of many of them.

import { path } from "../lib/api.js";
import { link, route, setQuery } from "../lib/router.js";
import { html, useEffect, useState } from "../lib/ui.js";
import { Empty, Page, Tabs, Tags, Time } from "../parts/basics.js";
import { note } from "../parts/notes.js";
import { hasWildcard } from "../parts/search.js";
import { RecordTable } from "../parts/table.js";
import { plainTags } from "./device/command_shapes.js";
import { CLASSES, deviceQuery, SHOWN } from "./devices/choice.js";
import { Many } from "./devices/many.js";
import { QueryBox } from "./devices/query_box.js";
import { chooseValues, healthColumn, lifeColumn, shownValues, useHealthOf, valueColumns } from "./devices/values.js";

const REPEAT_MS = 15_000;
const REPEAT_NARROWED_MS = 60_000; // the server may have to read all devices for it
const LEAD = "A device reports states, gets commands and may be connected.";

export function Devices({ app }) {
  const { query } = route.value;
  const source = path("applications", app, "devices");
  const deleted = query.show === "deleted";
  const [list, setList] = useState(null);
  const [refresh, setRefresh] = useState(0);
  const [selected, setSelected] = useState(new Set());
  const [all, setAll] = useState(false);
  const names = deleted ? [] : shownValues(app, list);
  const found = useHealthOf(app, deleted ? null : list, names);
  const shown = JSON.stringify(query);
  useEffect(() => clear(), [shown]);

  const clear = () => {
    setSelected(new Set());
    setAll(false);
  };
  const changed = () => {
    clear();
    setRefresh(refresh + 1);
  };
  const choose = () => chooseValues(app, names).catch((error) => note(error.message, "bad"));
  const narrowed = ["filter", "show", "class", "tag", "query"].some((name) => query[name]);
  const searched = hasWildcard(query.filter);
  const chosen = all
    ? { query: deviceQuery(query, { withName: true }), total: list?.totalCount ?? 0 }
    : { query: { id: { $in: [...selected] } }, total: selected.size };
  const recipes = html`<a class="button" href=${link("/applications", app, "recipes")}>Recipes</a>`;
  const button = html`<a class="button primary" data-create href=${link("/applications", app, "devices", "add")}>Add devices</a>`;
  const shownItems = SHOWN.map(([key, text]) => [key, text, link(route.value.path, { ...query, show: key, page: "", sort: "", direction: "" })]);

  return html`<${Page} title="Devices" lead=${LEAD} actions=${html`${recipes}${button}`}>
    <${Tabs} label="Which devices" items=${shownItems} current=${query.show || ""} />
    <${QueryBox} />
    <div class="devices"><${RecordTable} noun="device" source=${source} refresh=${refresh} every=${narrowed ? REPEAT_NARROWED_MS : REPEAT_MS}
      searched=${searched} params=${{ query: deviceQuery(query, { withName: searched }), queryDeleted: deleted || undefined }}
      columns=${deleted ? DELETED : columns(found, names)} sortField="name" filters=${html`<${Filters} />${!deleted && html`<button onClick=${choose}>Values</button>`}`}
      href=${deleted ? undefined : (row) => link("/applications", app, "devices", row.id)}
      selected=${selected} select=${(ids) => { setAll(false); setSelected(ids); }} onLoaded=${setList}
      empty=${!narrowed && html`<${Empty} title="There are no devices yet" call=${{ method: "POST", path: source, body: { name: "pump-1", attributes: [{ name: "temperature", dataType: "number" }] } }}>
        <p>Add one, or many from a recipe: each gets a program that reports as this device.</p>
        <div>${button}</div></${Empty}>`} /></div>
    <div class="below-list">${selected.size > 0 && html`<${Many} ...${{ app, chosen, deleted, all, clear, changed }} matching=${list?.totalCount ?? 0} selectAll=${() => setAll(true)} />`}</div>
  </${Page}>`;
}

const columns = (found, names) => [
  healthColumn(found),
  { label: "Name", sort: "name", link: true, render: (row) => row.name },
  lifeColumn(found),
  ...valueColumns(found, names),
  { label: "Tags", render: (row) => html`<${Tags} tags=${plainTags(row.tags)} />` },
  { label: "Class", render: (row) => row.deviceClass },
  { label: "Id", sort: "id", render: (row) => html`<code>${row.id}</code>` },
];

const DELETED = [
  { label: "Name", sort: "name", render: (row) => row.name },
  { label: "Deleted", sort: "deletedAt", render: (row) => html`<${Time} at=${row.deletedAt} age />` },
  { label: "Tags", render: (row) => html`<${Tags} tags=${plainTags(row.tags)} />` },
  { label: "Class", render: (row) => row.deviceClass },
  { label: "Id", sort: "id", render: (row) => html`<code>${row.id}</code>` },
];

// The filters beside the search.
function Filters() {
  const { query } = route.value;
  const [tag, setTag] = useState(query.tag || ""); // what is typed stays when the list is read again
  useEffect(() => setTag(query.tag || ""), [query.tag]);
  const set = (name) => (event) => setQuery({ [name]: event.target.value.trim(), page: "" }, { push: true });
  return html`
    <select aria-label="Device class" value=${query.class || ""} onChange=${set("class")}>
      <option value="">All classes</option>${CLASSES.map((each) => html`<option value=${each} selected=${each === query.class}>${each}</option>`)}</select>
    <input class="tag-filter" aria-label="Tags, such as floor=1, room" placeholder="Tags: floor=1, room" value=${tag}
      onInput=${(event) => setTag(event.target.value)} onChange=${set("tag")} />`;
}
