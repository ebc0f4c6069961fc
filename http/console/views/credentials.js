// Credentials: logins to other services, which workflows and integrations use by name. Secrets are never shown.

import { get, path } from "../lib/api.js";
import { useData } from "../lib/hooks.js";
import { link } from "../lib/router.js";
import { html } from "../lib/ui.js";
import { Badge, Card, Facts, Loaded, Snippet } from "../parts/basics.js";
import { RecordList, RecordPage } from "../parts/records.js";
import { configFields, configFacts, fieldsOf, typeChoices, useDocument } from "../parts/schema.js";

const Enabled = ({ enabled }) => html`<${Badge} tone=${enabled ? "good" : ""}>${enabled ? "enabled" : "disabled"}</${Badge}>`;

export function Credentials({ app }) {
  const document = useDocument();
  const types = document && typeChoices(document, "CredentialPost", "type");
  const fields = document && [
    ...fieldsOf(document, "CredentialPost", { only: ["name", "type", "description", "enabled"], more: { type: { options: types } } }),
    ...configFields(document, "CredentialPost", "type"),
  ];
  return html`<${RecordList}
    title="Credentials" noun="credential" source=${path("applications", app, "credentials")}
    lead="A credential is a login to another service. Workflows and integrations use it by its name, without its secret."
    columns=${[
      { label: "Name", sort: "name", render: (row) => row.name },
      { label: "Type", sort: "type", render: (row) => types?.find(([type]) => type === row.type)?.[1] || row.type },
      { label: "Enabled", render: (row) => html`<${Enabled} enabled=${row.enabled} />` },
      { label: "Description", render: (row) => row.description || "" },
    ]}
    fields=${fields}
    example=${{ name: "loggly", type: "loggly", logglyConfig: { customerToken: "a token" } }}
    href=${(row) => link("/applications", app, "credentials", row.id)}
  />`;
}

export function Credential({ app, credential }) {
  const document = useDocument();
  const source = path("applications", app, "credentials", credential);
  return html`<${RecordPage}
    noun="credential" source=${source} trail=${[["Credentials", link("/applications", app, "credentials")]]} home=${link("/applications", app, "credentials")}
    fields=${document && ((record) => [
      ...fieldsOf(document, "CredentialPatch", { only: ["name", "description", "enabled"], change: true }),
      ...configFields(document, "CredentialPatch", "type", { change: true, type: record.type }),
    ])}
    facts=${(record) => [
      ["Enabled", html`<${Enabled} enabled=${record.enabled} />`],
      ["Type", (document && typeChoices(document, "CredentialPost", "type").find(([type]) => type === record.type)?.[1]) || record.type],
      ["Description", record.description || null],
    ]}
  >${(record) => html`<${Config} config=${record[`${record.type}Config`]} /><${Links} app=${app} source=${source} />`}</${RecordPage}>`;
}

function Config({ config }) {
  const { rows, texts } = configFacts(config);
  return html`<${Card} title="Configuration">
    ${rows.length > 0 && html`<${Facts} rows=${rows} />`}
    ${texts.map(([label, text]) => html`<h3>${label}</h3><${Snippet} text=${text} label=${label} />`)}
    <p class="quiet">Secrets are stored encrypted, and are not shown.</p>
  </${Card}>`;
}

// What uses the credential: integrations, and workflows in their current and in named versions.
function Links({ app, source }) {
  const data = useData((signal) => get(source + "/linkedResources", {}, { signal }), [source]);
  return html`<${Card} title="Used by"><${Loaded} data=${data}>${({ integrations, flows, flowVersions }) => {
    const items = [
      ...integrations.items.map((each) => ["integration", each.name, link("/applications", app, "integrations", each.id)]),
      ...flows.items.map((each) => ["workflow", each.name, link("/applications", app, "workflows", each.id)]),
      ...flowVersions.items.map((each) => ["version of a workflow", each.version, link("/applications", app, "workflows", each.flowId)]),
    ];
    if (!items.length) return html`<p class="quiet">Nothing uses it. Name it in the node of a workflow, or in an integration.</p>`;
    return html`<ul class="plain">${items.map(([kind, name, address]) => html`<li><a href=${address}>${name}</a> <span class="quiet">${kind}</span></li>`)}</ul>`;
  }}</${Loaded}></${Card}>`;
}
