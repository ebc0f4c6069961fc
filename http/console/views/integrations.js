// Integrations: connections of the server to brokers and services of others, whose messages start workflows.

import { get, path } from "../lib/api.js";
import { useData } from "../lib/hooks.js";
import { link } from "../lib/router.js";
import { html } from "../lib/ui.js";
import { Badge, Card, Facts, Fresh, Snippet, Time } from "../parts/basics.js";
import { RecordList, RecordPage } from "../parts/records.js";
import { configFacts, configFields, fieldsOf, typeChoices, useDocument } from "../parts/schema.js";

const LIST_MS = 5000;
const STATE_MS = 2000;
// The server connects to these; the others are only stored.
const CONNECTED = ["mqtt", "websocket"];
const hasTopics = (values) => values.integrationType === "mqtt";
const usesCredential = (values) => !CONNECTED.includes(values.integrationType);
const COMMON = { topics: { hint: "The topics to which the server subscribes, one a line", show: hasTopics }, credentialName: { show: usesCredential }, enabled: { show: (values) => !usesCredential(values) } };

// The state of a connection: [what, tone].
function state({ enabled, status }) {
  if (!enabled) return ["disabled", ""];
  if (!status) return ["not started", "warn"];
  return status.connectInfo.ts ? ["connected", "good"] : status.disconnectInfo.error ? ["failed", "bad"] : ["connecting", "warn"];
}

function State({ record }) {
  const [text, tone] = state(record);
  return html`<${Badge} tone=${tone}>${text}</${Badge}>`;
}

export function Integrations({ app }) {
  const document = useDocument();
  const types = document && typeChoices(document, "IntegrationPost", "integrationType").sort(([one], [other]) => CONNECTED.includes(other) - CONNECTED.includes(one));
  const fields = document && [
    ...fieldsOf(document, "IntegrationPost", {
      only: ["name", "integrationType", "enabled", "topics", "credentialName"],
      more: { ...COMMON, integrationType: { label: "Type", options: types, hint: "The server connects to MQTT and WebSocket. The other types are stored, and cannot be enabled" } },
    }),
    ...configFields(document, "IntegrationPost", "integrationType"),
  ];
  return html`<${RecordList}
    title="Integrations" noun="integration" source=${path("applications", app, "integrations")}
    lead="An integration is a connection of this server to a broker or a service. Its messages start workflows."
    columns=${[
      { label: "Name", sort: "name", render: (row) => row.name },
      { label: "Type", render: (row) => row.integrationType },
      { label: "State", render: (row) => html`<${State} record=${row} />` },
      { label: "Connected", render: (row) => (row.status?.connectInfo.ts ? html`<${Time} at=${row.status.connectInfo.ts} age />` : "") },
      { label: "Last error", render: (row) => row.status?.disconnectInfo.error || "" },
    ]}
    fields=${fields}
    initial=${{ integrationType: "mqtt", enabled: true, mqttConfig: { protocol: "mqtt", port: 1883, protocolVersion: "5", clean: true } }}
    example=${{ name: "broker", integrationType: "mqtt", topics: ["farm/#"], mqttConfig: { protocol: "mqtts", host: "broker.example.com", port: 8883 } }}
    href=${(row) => link("/applications", app, "integrations", row.id)}
    more=${{ every: LIST_MS }}
  />`;
}

export function Integration({ app, integration }) {
  const document = useDocument();
  const source = path("applications", app, "integrations", integration);
  return html`<${RecordPage}
    noun="integration" source=${source} trail=${[["Integrations", link("/applications", app, "integrations")]]} home=${link("/applications", app, "integrations")}
    fields=${document && ((record) => [
      ...fieldsOf(document, "IntegrationPatch", { only: ["name", "enabled", "topics", "credentialName"], more: shownFor(record), change: true }),
      ...configFields(document, "IntegrationPatch", "integrationType", { change: true, type: record.integrationType }),
    ])}
    facts=${(record) => [
      ["Type", record.integrationType],
      record.topics.length > 0 && ["Topics", html`<span class="row">${record.topics.map((topic) => html`<code>${topic}</code>`)}</span>`],
      ["Credential", record.credentialName || null],
    ].filter(Boolean)}
  >${(record) => {
    const { rows, texts } = configFacts(record[`${record.integrationType}Config`]);
    return html`<${Connection} key=${record.lastUpdated} source=${source} first=${record} />
      <${Card} title="Configuration"><${Facts} rows=${rows} />
        ${texts.map(([label, text]) => html`<h3>${label}</h3><${Snippet} text=${text} label=${label} />`)}
        <p class="quiet">Secrets are stored encrypted, and are not shown.</p></${Card}>
      <${Card} title="Start a workflow"><p>Give a workflow a trigger of the type <code>integration</code> with this key.</p>
        <${Snippet} text=${record.id} label="The key of the trigger" /></${Card}>`;
  }}</${RecordPage}>`;
}

const shownFor = (record) => ({
  topics: { ...COMMON.topics, show: () => hasTopics(record) },
  credentialName: { show: () => usesCredential(record) },
  enabled: { show: () => !usesCredential(record) },
});

// The state of the connection, kept up to date. `first`: the record as it was loaded with the page.
function Connection({ source, first }) {
  const data = useData((signal) => get(source, {}, { signal }), [source], { every: STATE_MS });
  const record = data.value || first, { status } = record;
  return html`<${Card} title="Connection" actions=${html`<${Fresh} data=${data} />`}>
    <${Facts} rows=${[
      ["State", html`<${State} record=${record} />`],
      status?.connectInfo.ts && ["Connected", html`<${Time} at=${status.connectInfo.ts} age />`],
      status?.lastKeepAlive && ["Heard", html`<${Time} at=${status.lastKeepAlive} age />`],
      status?.disconnectInfo.ts && ["Disconnected", html`<${Time} at=${status.disconnectInfo.ts} age />`],
      status?.disconnectInfo.error && ["Last error", html`<span class="break">${status.disconnectInfo.error}</span>`],
      status?.nextAttempt && !status.connectInfo.ts && ["Next attempt", html`<${Time} at=${status.nextAttempt} age />`],
    ].filter(Boolean)} />
    ${!record.enabled && html`<p class="quiet">The server does not connect. ${CONNECTED.includes(record.integrationType) ? "Change the integration to enable it." : "It connects to MQTT and WebSocket only."}</p>`}
  </${Card}>`;
}
