// API tokens of the user, for programs that act as the user. A token is shown once.

import { del, path, patch, post } from "../../lib/api.js";
import { html, useState } from "../../lib/ui.js";
import { Empty, Snippet, Time } from "../../parts/basics.js";
import { confirmed } from "../../parts/dialog.js";
import { openForm } from "../../parts/form.js";
import { noted } from "../../parts/notes.js";
import { showOnce } from "../../parts/records.js";
import { fieldsOf, useDocument } from "../../parts/schema.js";
import { Expiry, scopeChoices, Scopes } from "../../parts/scopes.js";
import { RecordTable } from "../../parts/table.js";
import { Status } from "../keys.js";

const SOURCE = "/me/tokens";
const LEAD = "A program calls the API with a token, and acts as you do, as far as its scopes go: in your applications, and in those of your organizations.";
const FAMILIES = [
  ["all.User", "everything that you may do"],
  ["all.User.read", "read everything that you may read"],
  ["all.User.cli", "what a command line client needs"],
  ["all.Organization", "everything in your organizations and applications"],
  ["all.Organization.read", "read your organizations and applications"],
  ["all.Application", "everything in your applications"],
  ["all.Application.read", "read everything in your applications"],
  ["all.Device", "everything that devices may do"],
  ["all.Device.read", "read what devices may read"],
];

const call = (token) => `curl -s '${location.origin}/applications' \\\n  -H "Authorization: Bearer ${token}"`;

export function Tokens({ reload }) {
  const document = useDocument();
  const [refresh, setRefresh] = useState(0);
  const changed = () => { setRefresh((before) => before + 1); reload(); };
  const create = async () => {
    const fields = fieldsOf(document, "TokenPost", {
      only: ["name", "description", "expirationDate", "scope"],
      more: {
        expirationDate: { label: "Expires", type: "time", hint: "In your time zone. Without it, the token is valid until it is deleted" },
        scope: { label: "Scopes", type: "choices", required: true, options: scopeChoices(document, "all.User", FAMILIES), hint: "What the token can do. Choose as little as it needs" },
      },
    });
    const answer = await openForm("Create an API token", { fields, initial: { scope: ["all.User.read"] }, button: "Create", submit: (values) => post(SOURCE, values) });
    if (!answer) return;
    changed();
    await showOnce("The API token", "This is the token.", answer.token, html`<h3>Use it</h3><${Snippet} text=${call(answer.token)} label="A call with curl" />`);
  };
  const turn = async (row) => {
    const status = row.status === "active" ? "inactive" : "active";
    if (await noted(patch(path("me", "tokens", row.id), { status }), `${row.name} is ${status}.`)) changed();
  };
  const remove = async (row) => {
    const done = await confirmed({ title: "Delete this token?", text: html`Programs that use <b>${row.name}</b> are refused from now on.`, act: () => del(path("me", "tokens", row.id)) });
    if (done) changed();
  };
  const button = html`<button class="primary" data-create disabled=${!document} onClick=${create}>Create an API token</button>`;
  const columns = [
    { label: "Name", sort: "name", render: (row) => html`${row.name}<div class="quiet">${row.description}</div>` },
    { label: "Status", sort: "status", render: (row) => html`<${Status} status=${row.status} />` },
    { label: "Scopes", render: (row) => html`<${Scopes} scopes=${row.scope} />` },
    { label: "Expires", sort: "expirationDate", render: (row) => html`<${Expiry} at=${row.expirationDate} />` },
    { label: "Created", sort: "creationDate", render: (row) => html`<${Time} at=${row.creationDate} />` },
    { label: "Actions", render: (row) => html`<span class="row">
      <button class="small" aria-label=${`${row.status === "active" ? "Deactivate" : "Activate"} ${row.name}`} onClick=${() => turn(row)}>${row.status === "active" ? "Deactivate" : "Activate"}</button>
      <button class="small danger" aria-label=${`Delete ${row.name}`} onClick=${() => remove(row)}>Delete</button></span>` },
  ];
  const empty = html`<${Empty} title="You have no API tokens" call=${{ method: "POST", path: SOURCE, body: { name: "read only", scope: ["all.User.read"] } }}>
    <div>${button}</div></${Empty}>`;
  return html`<p class="lead">${LEAD}</p>
    <${RecordTable} noun="API token" source=${SOURCE} columns=${columns} empty=${empty} refresh=${refresh} sortField="creationDate" sortDirection="desc" filters=${button} />`;
}
