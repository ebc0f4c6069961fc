// One dashboard: its blocks, what they show, and how it is changed and shared. The range, the parameters and the editor
// are in the address.

import { access } from "../lib/access.js";
import { del, get, patch, path, post } from "../lib/api.js";
import { useData } from "../lib/hooks.js";
import { go, link, route, setQuery } from "../lib/router.js";
import { html } from "../lib/ui.js";
import { Card, Empty, Loaded, Page } from "../parts/basics.js";
import { confirmed } from "../parts/dialog.js";
import { openForm } from "../parts/form.js";
import { JsonEditor } from "../parts/json.js";
import { note } from "../parts/notes.js";
import { Board } from "./dashboard/board.js";
import { Controls, chosen } from "./dashboard/controls.js";
import { Editor } from "./dashboard/editor.js";
import { EDITABLE, FIELDS } from "./dashboard/fields.js";
import { openSharing } from "./dashboard/share.js";
import { Sharing } from "./dashboards.js";

// `app` is the application of the dashboard; one of a user or an organization has none.
export function Dashboard({ app, dashboard }) {
  const home = app ? link("/applications", app, "dashboards") : link("/dashboards");
  const source = app ? path("applications", app, "dashboards", dashboard) : path("dashboards", dashboard);
  const data = useData((signal) => get(source, {}, { signal, exact: true }), [source]);
  const record = data.value;
  const { query } = route.value;
  // Changes are refused if somebody else has changed the dashboard since it was read; then it is read again. A dialog keeps
  // the revision that it was opened with, since that is what it changes, and so does the JSON, whose text would be lost.
  let revision = record?._etag;
  const change = async (changes, etag = revision) => {
    const changed = await patch(source, changes, { headers: { "if-match": `"${etag}"` } }).catch((failure) => {
      if (failure.status === 412 && edit !== "1") data.reload();
      throw failure;
    });
    revision = changed._etag;
    note("The dashboard is saved.");
    await data.reload(); // the next change begins with what this one has stored
    return changed;
  };
  // A number that was set cannot be unset, so an emptied field is refused.
  const fields = FIELDS.map((each) => ({ ...each, required: each.required || each.type === "number" }));
  const rename = () => openForm("Change this dashboard", { fields, initial: record, changesOnly: true, submit: change });
  const remove = async () => {
    const text = html`<b>${record.name}</b> is deleted for good, and its link ends.`;
    if (await confirmed({ title: "Delete this dashboard?", text, act: () => del(source) })) go(home);
  };
  const show = () => setQuery({ edit: "", add: "" });
  const readAgain = () => {
    show();
    data.reload();
  };
  // Who only reads is shown the dashboard, also at the address of the editor.
  const edit = access.value.may === "read" ? "" : query.edit;
  const mayDelete = app || access.value.may === "manage";
  const buttons = record && edit !== "blocks" && (edit
    ? html`<button onClick=${readAgain}>Show the dashboard</button>`
    : html`${record.public && html`<${Sharing} dashboard=${record} />`}<button data-write onClick=${() => openSharing(record, change)}>Share</button>
      <button data-write class="primary" data-create onClick=${() => setQuery({ edit: "blocks" }, { push: true })}>Edit the blocks</button>
      <button data-write onClick=${() => setQuery({ edit: "1" }, { push: true })}>Edit as JSON</button>
      <button data-write onClick=${rename}>Change</button>${mayDelete && html`<button class="danger" onClick=${remove}>Delete</button>`}`);
  return html`<${Page} trail=${[["Dashboards", home]]} title=${record?.name || "Dashboard"} lead=${record?.description} actions=${buttons} of=${data}>
    <${Loaded} data=${data}>${(found) => (edit === "blocks"
      ? html`<${Editor} key=${dashboard} ...${{ app, source, dashboard: found, body: chosen(found, query), adding: Boolean(query.add), done: show }}
          save=${(blocks, etag) => change({ blocks }, etag)} />`
      : edit ? html`<${Card} title="The dashboard as JSON"><${JsonEditor} changesOnly key=${found._etag} rows=${30}
          value=${Object.fromEntries(EDITABLE.filter((name) => found[name] !== undefined).map((name) => [name, found[name]]))} save=${change} /></${Card}>`
      : html`<${Shown} ...${{ app, source, dashboard: found, query, reload: data.reload }} />`)}</${Loaded}>
  </${Page}>`;
}

function Shown({ app, source, dashboard, query, reload }) {
  if (!dashboard.blocks.length) {
    return html`<${Card} flush><${Empty} title="This dashboard has no blocks yet"
      call=${{ method: "PATCH", path: source, body: { blocks: [{ blockType: "event-list", startX: 0, startY: 0, width: 4, height: 3, title: "Events" }] } }}>
      <p>A block shows a chart, a value, a list or a text.</p><div><button data-write class="primary" onClick=${() => setQuery({ edit: "blocks", add: "1" }, { push: true })}>Add a block</button></div>
    </${Empty}></${Card}>`;
  }
  const body = chosen(dashboard, query);
  return html`<${Controls} dashboard=${dashboard} query=${query} app=${app} whole />
    <${Board} dashboard=${dashboard} body=${body} load=${(signal) => post(`${source}/data`, body, { signal })} fixed=${Boolean(query.end)} app=${app} changed=${reload} />`;
}
