// API tokens of an application: what programs and people call the API with. A token is shown once.

import { path } from "../lib/api.js";
import { link } from "../lib/router.js";
import { html } from "../lib/ui.js";
import { Card, Snippet } from "../parts/basics.js";
import { RecordList, RecordPage, showOnce } from "../parts/records.js";
import { fieldsOf, useDocument } from "../parts/schema.js";
import { Expiry, scopeChoices, Scopes } from "../parts/scopes.js";
import { Status, Switch } from "./keys.js";

const FAMILIES = [
  ["all.Application", "everything in this application"],
  ["all.Application.read", "read everything in this application"],
  ["all.Application.cli", "what a command line client needs"],
  ["all.Device", "everything that a device may do"],
  ["all.Device.read", "read what a device may read"],
];

const call = (app, token) => `curl -s '${location.origin}${path("applications", app, "devices")}' \\\n  -H "Authorization: Bearer ${token}"`;

export function Tokens({ app }) {
  const document = useDocument();
  const fields = document && fieldsOf(document, "TokenPost", {
    only: ["name", "description", "expirationDate", "scope"],
    more: {
      expirationDate: { label: "Expires", type: "time", hint: "In your time zone. Without it, the token is valid until it is deleted" },
      scope: { label: "Scopes", type: "choices", required: true, options: scopeChoices(document, "all.Application", FAMILIES), hint: "What the token can do. Choose as little as it needs" },
    },
  });
  return html`<${RecordList}
    title="API tokens" noun="API token" source=${path("applications", app, "tokens")} sortField="creationDate"
    lead="A program calls the API with a token. It can do what its scopes say, in this application only."
    columns=${[
      { label: "Name", sort: "name", render: (row) => row.name },
      { label: "Status", sort: "status", render: (row) => html`<${Status} status=${row.status} />` },
      { label: "Scopes", render: (row) => html`<${Scopes} scopes=${row.scope} />` },
      { label: "Expires", sort: "expirationDate", render: (row) => html`<${Expiry} at=${row.expirationDate} />` },
      { label: "Created by", render: (row) => row.creatorName || row.creatorType },
    ]}
    fields=${fields}
    initial=${{ scope: ["all.Application.read"] }}
    example=${{ name: "read only", scope: ["all.Application.read"] }}
    created=${(answer) => showOnce("The API token", "This is the token.", answer.token,
      html`<h3>Use it</h3><${Snippet} text=${call(app, answer.token)} label="A call with curl" />`)}
    href=${(row) => link("/applications", app, "tokens", row.id)}
  />`;
}

export function Token({ app, token }) {
  const document = useDocument();
  const source = path("applications", app, "tokens", token);
  return html`<${RecordPage}
    noun="API token" source=${source} trail=${[["API tokens", link("/applications", app, "tokens")]]} home=${link("/applications", app, "tokens")}
    fields=${fieldsOf(document, "TokenPatch", { only: ["name", "description", "status"], change: true })}
    actions=${(record, reload) => html`<${Switch} ...${{ source, record, reload }} />`}
    facts=${(record) => [
      ["Status", html`<${Status} status=${record.status} />`],
      ["Expires", html`<${Expiry} at=${record.expirationDate} />`],
      ["Created by", record.creatorName || record.creatorType],
      ["Description", record.description || null],
    ]}
  >${(record) => html`<${Card} title="Scopes"><ul class="plain">${record.scope.map((scope) => html`<li><code>${scope}</code> <span class="quiet">${meaning(document, scope)}</span></li>`)}</ul></${Card}>
    <${Card} title="Use it"><p>The token was shown when it was created. If it is lost, create another one, and delete this one.</p>
      <${Snippet} text=${call(app, "$TOKEN")} label="A call with curl" /></${Card}>`}</${RecordPage}>`;
}

function meaning(document, scope) {
  const family = FAMILIES.find(([name]) => name === scope);
  if (family) return family[1];
  if (scope.endsWith(".*")) return `all operations of ${scope.slice(0, -2)}`;
  for (const methods of Object.values(document?.paths || {})) {
    for (const operation of Object.values(methods)) if (operation["x-scopes"]?.includes(scope)) return operation.summary;
  }
  return "";
}
