// Webhooks: addresses that other systems call. A call starts the workflows that have a trigger for the webhook.

import { get, path } from "../lib/api.js";
import { useData } from "../lib/hooks.js";
import { link } from "../lib/router.js";
import { html } from "../lib/ui.js";
import { Badge, Card, Loaded, shellText, Snippet } from "../parts/basics.js";
import { RecordList, RecordPage } from "../parts/records.js";
import { fieldsOf, useDocument } from "../parts/schema.js";

const VERIFICATIONS = [
  ["none", "no verification"], ["alexa", "Alexa: signed by Amazon"], ["facebook", "Facebook: verifies the address"],
  ["fitbit", "Fitbit: verifies the address"], ["twilio", "Twilio: each call is signed"],
];
const BUFFERS = [["", "not set: read as UTF-8, files as base64"], ["base64", "base64"], ["hex", "hex"], ["binary", "a character for each byte"], ["array", "an array of numbers"]];
const NAMES = [
  "name", "description", "enabled", "waitForReply", "responseCode", "verificationType", "verificationCode", "basicAuthUsername",
  "basicAuthPassword", "isWebsocket", "castBuffersAs", "annotateMultipart",
];
const MORE = {
  verificationType: { label: "Verification", options: VERIFICATIONS },
  verificationCode: { type: "text", show: (values) => values.verificationType !== "none" },
  isWebsocket: { label: "Takes WebSocket connections instead of calls" },
  waitForReply: { label: "Answers with the reply of a workflow", show: (values) => !values.isWebsocket },
  responseCode: { show: (values) => !values.isWebsocket && !values.waitForReply },
  castBuffersAs: { label: "Bytes: messages, binary bodies and files of forms", options: BUFFERS },
  annotateMultipart: {
    label: "Files of forms with their name and type", show: (values) => !values.isWebsocket && values.castBuffersAs,
  },
};

// In a change, the empty choice removes the field.
const CHANGED = { ...MORE, castBuffersAs: { ...MORE.castBuffersAs, blank: null } };

const address = (webhook) => {
  const origin = webhook.isWebsocket ? location.origin.replace(/^http/, "ws") : location.origin;
  return `${origin}/webhooks/${webhook.token}`;
};
const Kind = ({ webhook }) => html`<span class="row">
  <${Badge} tone=${webhook.enabled ? "good" : ""}>${webhook.enabled ? "enabled" : "disabled"}</${Badge}>
  ${webhook.isWebsocket && html`<${Badge} tone="accent">WebSocket</${Badge}>`}
  ${webhook.waitForReply && html`<${Badge} tone="accent">replies</${Badge}>`}</span>`;
const verification = (webhook) => VERIFICATIONS.find(([type]) => type === webhook.verificationType)[1];

export function Webhooks({ app }) {
  const document = useDocument();
  return html`<${RecordList}
    title="Webhooks" noun="webhook" source=${path("applications", app, "webhooks")}
    lead="A webhook has an address that other systems call. Each call starts the workflows with a trigger for it."
    columns=${[
      { label: "Name", sort: "name", render: (row) => row.name },
      { label: "State", render: (row) => html`<${Kind} webhook=${row} />` },
      { label: "Verification", render: verification },
      { label: "Answers with", number: true, render: (row) => (row.waitForReply || row.isWebsocket ? "-" : row.responseCode) },
      { label: "Address", render: (row) => html`<code>/webhooks/${row.token}</code>` },
    ]}
    fields=${fieldsOf(document, "WebhookPost", { only: NAMES, more: MORE })}
    example=${{ name: "orders" }}
    href=${(row) => link("/applications", app, "webhooks", row.id)}
  />`;
}

export function Webhook({ app, webhook }) {
  const document = useDocument();
  return html`<${RecordPage}
    noun="webhook" source=${path("applications", app, "webhooks", webhook)}
    trail=${[["Webhooks", link("/applications", app, "webhooks")]]} home=${link("/applications", app, "webhooks")}
    fields=${fieldsOf(document, "WebhookPatch", { only: NAMES, more: CHANGED, change: true })}
    facts=${(record) => [
      ["State", html`<${Kind} webhook=${record} />`],
      ["Verification", verification(record)],
      ["Verification code", record.verificationCode || null],
      ["Basic authentication", record.basicAuthUsername ? `as ${record.basicAuthUsername}` : "none"],
      !record.isWebsocket && !record.waitForReply && ["Answers with", record.responseCode],
      ["Description", record.description || null],
    ].filter(Boolean)}
  >${(record) => html`
    <${Card} title="Address"><p>Who has this address can call it. To change it, create another webhook, and delete this one.</p>
      <${Snippet} text=${address(record)} label="The address" /></${Card}>
    <${Card} title="Try it"><${Snippet} text=${tryIt(record)} label="A call with curl" /></${Card}>
    <${Started} app=${app} webhook=${record} />`}</${RecordPage}>`;
}

function tryIt(webhook) {
  const user = webhook.basicAuthUsername ? ` -u ${shellText(`${webhook.basicAuthUsername}:PASSWORD`)}` : "";
  if (webhook.isWebsocket) {
    const headers = "-H 'Connection: Upgrade' -H 'Upgrade: websocket' -H 'Sec-WebSocket-Version: 13' -H 'Sec-WebSocket-Key: dGVzdGluZyBhIHdlYmhvb2s='";
    return `curl -si -N --http1.1 '${address(webhook).replace(/^ws/, "http")}'${user} \\\n  ${headers}`;
  }
  return `curl -si '${address(webhook)}'${user} -H 'Content-Type: application/json' -d '{"hello": "webhook"}'`;
}

// The workflows that a call starts.
function Started({ app, webhook }) {
  // A list has one class of workflows; those of two run on the server.
  const flows = (signal) => async (flowClass) => (await get(path("applications", app, "flows"), { flowClass, triggerFilter: [{ type: "webhook", key: webhook.id }], perPage: 100 }, { signal })).items;
  const data = useData(async (signal) => (await Promise.all(["cloud", "experience"].map(flows(signal)))).flat(), [webhook.id]);
  return html`<${Card} title="Workflows that a call starts"><${Loaded} data=${data}>${(items) => (items.length === 0
    ? html`<p class="quiet">None yet. Give a workflow a trigger of the type <code>webhook</code> with the key <code>${webhook.id}</code>.</p>`
    : html`<ul class="plain">${items.map((flow) => html`<li><a href=${link("/applications", app, "workflows", flow.id)}>${flow.name}</a>
        ${!flow.enabled && html` <${Badge}>disabled</${Badge}>`}</li>`)}</ul>`)}</${Loaded}></${Card}>`;
}
