// Access keys: what devices log in with. The secret of a key is shown once, when it is created.

import { get, patch, path } from "../lib/api.js";
import { plural } from "../lib/format.js";
import { link } from "../lib/router.js";
import { html } from "../lib/ui.js";
import { Badge, Card, Snippet, Tags } from "../parts/basics.js";
import { noted } from "../parts/notes.js";
import { RecordList, RecordPage, showOnce } from "../parts/records.js";
import { fieldsOf, useDocument } from "../parts/schema.js";
import { Programs } from "./provision/connect.js";

const TOPIC_CHOICES = [["all", "all topics"], ["none", "no topic"], ["whitelist", "only the topics below"], ["blacklist", "all but the topics below"]];
const ADDRESS_CHOICES = [["all", "all addresses"], ["whitelist", "only the addresses below"], ["blacklist", "all but the addresses below"]];
const isList = (choice) => choice === "whitelist" || choice === "blacklist";

// The fields of forms that choose devices and topics as access keys do.
export const deviceFields = (app) => ({
  deviceIds: { label: "Devices by name", type: "records", source: path("applications", app, "devices"), hint: "With neither a name nor a tag: all devices" },
  deviceTags: { label: "Devices by tag", hint: "Devices that have at least one of these tags, one a line" },
  filterType: { label: "Other topics", options: TOPIC_CHOICES, hint: undefined },
  pubTopics: { show: (values) => isList(values.filterType) },
  subTopics: { show: (values) => isList(values.filterType) },
});
const fieldsFor = (app) => ({
  ...deviceFields(app),
  addressFilterType: { label: "Network addresses", options: ADDRESS_CHOICES, hint: undefined },
  addresses: { show: (values) => isList(values.addressFilterType), hint: "Addresses or ranges such as 10.0.0.0/8, one a line" },
});
const NAMES = ["name", "description", "deviceIds", "deviceTags", "filterType", "pubTopics", "subTopics", "addressFilterType", "addresses"];

// The devices that a key, a certificate or an archive takes, as a short text. Only an archive has a `mode`.
export function admits({ deviceFilterType, deviceIds = [], deviceTags = [], mode }) {
  const filterType = mode || deviceFilterType || (deviceIds.length || deviceTags.length ? "whitelist" : "all");
  if (!isList(filterType)) return filterType === "none" ? "no device" : "all devices";
  const parts = [deviceIds.length && plural(deviceIds.length, "device"), deviceTags.length && plural(deviceTags.length, "tag")];
  const listed = parts.filter(Boolean).join(" and ") || "no device";
  return filterType === "whitelist" ? `only ${listed}` : `all but ${listed}`;
}

// Rows of Facts about the devices that are listed.
export const listedDevices = (app, record) => [
  ["Devices", admits(record)],
  record.deviceIds.length > 0 && ["Listed devices", html`<span class="row">${record.deviceIds.map((id) => html`<a href=${link("/applications", app, "devices", id)}><code>${id}</code></a>`)}</span>`],
  record.deviceTags.length > 0 && ["Listed tags", html`<${Tags} tags=${record.deviceTags} />`],
].filter(Boolean);

export const Status = ({ status }) => html`<${Badge} tone=${status === "active" ? "good" : "bad"}>${status}</${Badge}>`;

// A button that sets a record active or inactive. What is inactive ends access at once, and can be active again.
export function Switch({ source, record, reload }) {
  const other = record.status === "active" ? "inactive" : "active";
  const change = async () => (await noted(patch(source, { status: other }), `It is ${other} now.`)) && reload();
  return html`<button data-write onClick=${change}>Set ${other}</button>`;
}

const logIn = (key, secret, device) => `curl -s '${location.origin}/auth/device' -H 'Content-Type: application/json' \\\n  -d '${JSON.stringify({ deviceId: device, key, secret })}'`;

// A key for one device has programs that report as it; one for many has the login of any of them.
async function created(app, answer) {
  const only = answer.deviceIds.length === 1 && !answer.deviceTags.length && (await get(path("applications", app, "devices", answer.deviceIds[0])).catch(() => null));
  const more = only ? html`<h3>Report as ${only.name}</h3><${Programs} access=${{ url: location.origin, app, device: only.id, key: answer.key, secret: answer.secret }} attributes=${only.attributes} />`
    : html`<h3>Log a device in</h3><p>The key admits ${admits(answer)}: the id is that of the device that logs in.</p><${Snippet} text=${logIn(answer.key, answer.secret, answer.deviceIds[0] || "DEVICE_ID")} label="Log a device in with curl" />`;
  await showOnce("The access key", html`The key is <code>${answer.key}</code>. This is its secret.`, answer.secret, more);
}

export function Keys({ app }) {
  const document = useDocument();
  return html`<${RecordList}
    title="Access keys" noun="access key" source=${path("applications", app, "keys")} sortField="creationDate"
    lead="A device logs in with its id, an access key and the secret of the key. A key admits all devices, or some of them."
    columns=${[
      { label: "Name", sort: "name", render: (row) => row.name || row.key },
      { label: "Status", sort: "status", render: (row) => html`<${Status} status=${row.status} />` },
      { label: "Devices", render: admits },
      { label: "Addresses", render: (row) => (isList(row.addressFilterType) ? `${row.addressFilterType === "whitelist" ? "only" : "all but"} ${row.addresses.join(", ") || "none"}` : "all") },
      { label: "Key", sort: "key", render: (row) => html`<code>${row.key}</code>` },
    ]}
    fields=${fieldsOf(document, "KeyPost", { only: NAMES, more: fieldsFor(app) })}
    initial=${{ filterType: "all", addressFilterType: "all" }}
    example=${{ name: "Key of the gateway", filterType: "all" }}
    created=${(answer) => created(app, answer)}
    href=${(row) => link("/applications", app, "keys", row.id)}
  />`;
}

export function Key({ app, accessKey }) {
  const document = useDocument();
  const source = path("applications", app, "keys", accessKey);
  return html`<${RecordPage}
    noun="access key" source=${source} title=${(record) => record.name || record.key}
    trail=${[["Access keys", link("/applications", app, "keys")]]} home=${link("/applications", app, "keys")}
    fields=${fieldsOf(document, "KeyPatch", { only: [...NAMES, "status"], more: fieldsFor(app), change: true })}
    actions=${(record, reload) => html`<${Switch} ...${{ source, record, reload }} />`}
    facts=${(record) => [
      ["Status", html`<${Status} status=${record.status} />`],
      ["Key", html`<code>${record.key}</code>`],
      ...listedDevices(app, record),
      ["Network addresses", isList(record.addressFilterType) ? `${record.addressFilterType}: ${record.addresses.join(", ") || "none"}` : "all addresses"],
      ["Description", record.description || null],
    ]}
  >${(record) => html`<${Card} title="Log a device in">
      <p>The secret was shown when the key was created. If it is lost, create another key, and delete this one.</p>
      <${Snippet} text=${logIn(record.key, "SECRET", record.deviceIds[0] || "DEVICE_ID")} label="Log a device in with curl" />
    </${Card}>`}</${RecordPage}>`;
}
