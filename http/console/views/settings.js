// Settings of an application, a tab for each part of them.

import { mayTransfer } from "../lib/access.js";
import { del, get, patch, path } from "../lib/api.js";
import { useData } from "../lib/hooks.js";
import { go, link } from "../lib/router.js";
import { session } from "../lib/session.js";
import { html } from "../lib/ui.js";
import { Card, Facts, Loaded, Page, Problem, Shape, Tabs } from "../parts/basics.js";
import { confirmed } from "../parts/dialog.js";
import { Form } from "../parts/form.js";
import { note } from "../parts/notes.js";
import { stamps } from "../parts/records.js";
import { fieldsOf, useDocument } from "../parts/schema.js";
import { openTransfer } from "../parts/transfer.js";
import { Archives } from "./settings/archives.js";
import { Copies } from "./settings/copies.js";
import { Counts } from "./settings/counts.js";
import { Globals } from "./settings/globals.js";
import { Readme } from "./settings/readme.js";
import { Stored } from "./settings/stored.js";

// Parts take {app, application, reload}.
const TABS = {
  general: ["General", General], readme: ["Readme", Readme], globals: ["Globals", Globals], counts: ["Counts", Counts],
  archives: ["Archives", Archives], copies: ["Export and copies", Copies], stored: ["Notebooks and deployments", Stored],
};
const NAMES = ["name", "description", "endpointSlug", "endpointDefaultCors", "expUserTokenCutoff"];
const MORE = {
  endpointDefaultCors: { label: "Endpoints answer pages of other origins", hint: undefined },
  expUserTokenCutoff: { label: "End logins of experience users before", type: "time" },
};

export function Settings({ app, tab = "general" }) {
  const source = path("applications", app);
  const data = useData((signal) => get(source, {}, { signal }), [source]);
  const found = TABS[tab];
  if (!found) return html`<${Problem} error=${{ message: `There is no tab ${tab}.` }} />`;
  const items = Object.entries(TABS).map(([key, [title]]) => [key, title, key === "general" ? link("/applications", app, "settings") : link("/applications", app, "settings", key)]);
  return html`<${Page} title="Settings">
    <div><${Tabs} label="Settings" current=${tab} items=${items} /></div>
    <${Loaded} data=${data}>${(application) => html`<${found[1]} key=${tab} ...${{ app, application, reload: data.reload }} />`}</${Loaded}>
  </${Page}>`;
}

function General({ app, application, reload }) {
  const document = useDocument();
  const source = path("applications", app);
  if (!document) return html`<${Shape} />`;
  const fields = fieldsOf(document, "ApplicationPatch", { only: NAMES, more: MORE, change: true });
  const save = async (values) => {
    await patch(source, values);
    note("The settings are saved.");
    reload();
  };
  const transfer = async () => {
    if (await openTransfer({ application })) reload();
  };
  const remove = async () => {
    const text = html`<b>${application.name}</b> is deleted for good, with all its devices, what they reported, and everything else in it.`;
    if (await confirmed({ title: "Delete this application?", text, typed: application.name, act: () => del(source) })) go(link("/applications"));
  };
  return html`<${Card} title="About"><${Facts} rows=${[["Owner", application.organizationName || (application.ownerId === session.value.userId ? "your account" : application.ownerId)], ...stamps(application)]} /></${Card}>
    <${Card} title="General"><${Form} fields=${fields} initial=${application} changesOnly submit=${save} /></${Card}>
    ${mayTransfer() && html`<${Card} title="Owner"><p>Everything that the application holds goes with it, also its keys and tokens.</p>
      <div><button data-write onClick=${transfer}>Transfer to another owner</button></div></${Card}>`}
    <${Card} title="Delete" data-manage><p>Deletes the application and everything in it.</p>
      <div><button class="danger" onClick=${remove}>Delete this application</button></div></${Card}>`;
}
