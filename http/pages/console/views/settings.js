// Settings of an application, a tab for each part of them.

import { del, get, patch, path } from "../lib/api.js";
import { useData } from "../lib/hooks.js";
import { go, link } from "../lib/router.js";
import { session } from "../lib/session.js";
import { html } from "../lib/ui.js";
import { Card, Facts, Loaded, Page, Problem, Tabs } from "../parts/basics.js";
import { confirmed } from "../parts/dialog.js";
import { Form, openForm } from "../parts/form.js";
import { note } from "../parts/notes.js";
import { stamps } from "../parts/records.js";
import { fieldsOf, useDocument } from "../parts/schema.js";
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
  expUserTokenCutoff: { label: "End log-ins of experience users before", type: "time" },
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
  if (!document) return html`<p class="quiet" role="status">Loading.</p>`;
  const fields = fieldsOf(document, "ApplicationPatch", { only: NAMES, more: MORE, change: true });
  const save = async (values) => {
    await patch(source, values);
    note("The settings are saved.");
    reload();
  };
  const remove = async () => {
    const text = html`<b>${application.name}</b> is deleted for good, with all its devices, what they reported, and everything else in it.`;
    if (await confirmed({ title: "Delete this application?", text, typed: application.name, act: () => del(source) })) go(link("/applications"));
  };
  return html`<${Card} title="About"><${Facts} rows=${[["Owner", application.organizationName || (application.ownerId === session.value.userId ? "your account" : application.ownerId)], ...stamps(application)]} /></${Card}>
    <${Card} title="General"><${Form} key=${application.lastUpdated} fields=${fields} initial=${application} changesOnly submit=${save} /></${Card}>
    <${Card} title="Owner"><p>Everything that the application holds goes with it, also its keys and tokens.</p>
      <div><button onClick=${() => transfer(app, application, reload)}>Give it to another owner</button></div></${Card}>
    <${Card} title="Delete"><p>Deletes the application and everything in it.</p>
      <div><button class="danger" onClick=${remove}>Delete this application</button></div></${Card}>`;
}

// Give the application to an organization, or to a user by the id.
async function transfer(app, application, reload) {
  const listed = await get("/orgs", { perPage: 100 }).catch((error) => note(error.message, "bad"));
  if (!listed) return;
  const organizations = listed.items.filter((each) => each.id !== application.ownerId);
  const OTHER = "user";
  const given = await openForm("Give the application to another owner", {
    button: "Give",
    fields: [
      { name: "destinationId", label: "New owner", type: "select", options: [...organizations.map((each) => [each.id, each.name]), [OTHER, "a user"]], required: true },
      { name: "user", label: "Id of the user", required: true, hint: "24 hexadecimal digits", show: (values) => values.destinationId === OTHER },
    ],
    extra: html`<p class="quiet">You can use it afterwards only if your role at the new owner allows it.</p>`,
    submit: ({ destinationId, user }) => {
      const place = application.ownerType === "user" ? "/me/transferResources" : path("orgs", application.ownerId, "transferResources");
      const toUser = destinationId === OTHER;
      return patch(place, { destinationId: toUser ? user : destinationId, destinationType: toUser ? "user" : "organization", applicationIds: [app], strict: true });
    },
  });
  if (!given) return;
  note("The application has another owner.");
  reload();
}
