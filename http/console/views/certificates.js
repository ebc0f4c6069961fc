// Certificates of devices, and of the authorities that issue them: two lists at one address, chosen by `tab`.

import { path } from "../lib/api.js";
import { plural } from "../lib/format.js";
import { link, route } from "../lib/router.js";
import { html } from "../lib/ui.js";
import { Badge, Card, Facts, now, Snippet, Tabs, Time } from "../parts/basics.js";
import { RecordList, RecordPage } from "../parts/records.js";
import { fieldsOf, useDocument } from "../parts/schema.js";
import { admits, deviceFields, listedDevices, Status, Switch } from "./keys.js";

const DAY_MS = 86_400_000;
const SOON_DAYS = 30;
const FILES = ".pem,.crt,.cer,.txt";
const PEM = { type: "longtext", rows: 8, file: FILES, placeholder: "-----BEGIN CERTIFICATE-----" };
const NAMES = ["certificate", "description", "deviceIds", "deviceTags", "filterType", "pubTopics", "subTopics", "status"];
const fieldsFor = (app) => ({ ...deviceFields(app), certificate: PEM });

const tabs = (app, current) => html`<${Tabs} label="Kinds of certificates" current=${current} items=${[
  ["devices", "Of devices", link("/applications", app, "certificates")],
  ["authorities", "Of authorities", link("/applications", app, "certificates", { tab: "authorities" })],
]} />`;

// Until when a certificate is valid, with a warning before it expires.
function Validity({ info }) {
  const left = new Date(info.notValidAfter).getTime() - now.value;
  const tone = left < 0 ? "bad" : left < SOON_DAYS * DAY_MS ? "warn" : "";
  return html`<${Time} at=${info.notValidAfter} />${tone && html` <${Badge} tone=${tone}>${left < 0 ? "expired" : `${plural(Math.ceil(left / DAY_MS), "day")} left`}</${Badge}>`}`;
}

const earliest = (infos) => infos.reduce((one, other) => (other.notValidAfter < one.notValidAfter ? other : one));

const infoRows = (info) => [
  ["Common name", info.commonName || "none"], ["Issuer", info.issuerName], ["Valid from", html`<${Time} at=${info.notValidBefore} />`],
  ["Valid until", html`<${Validity} info=${info} />`], ["Serial number", html`<code class="break">${info.serialNumber}</code>`],
  ["SHA-256", html`<code class="break">${info.fingerprint}</code>`],
];

export function Certificates({ app }) {
  const document = useDocument();
  if (route.value.query.tab === "authorities") return authorities(app, document);
  return html`<${RecordList}
    title="Certificates" noun="certificate" source=${path("applications", app, "certificates")} search="" sortField="creationDate"
    lead="A device whose connection presents one of these certificates logs in with its id alone."
    above=${tabs(app, "devices")}
    columns=${[
      { label: "Common name", render: (row) => row.certificateInfo.commonName || row.certificateInfo.serialNumber },
      { label: "Issuer", render: (row) => row.certificateInfo.issuerName },
      { label: "Status", sort: "status", render: (row) => html`<${Status} status=${row.status} />` },
      { label: "Devices", render: admits },
      { label: "Valid until", render: (row) => html`<${Validity} info=${row.certificateInfo} />` },
    ]}
    fields=${fieldsOf(document, "CertificatePost", { only: NAMES, more: fieldsFor(app) })}
    initial=${{ filterType: "all", status: "active" }}
    example=${{ certificate: "-----BEGIN CERTIFICATE-----\n...\n-----END CERTIFICATE-----\n", filterType: "all" }}
    href=${(row) => link("/applications", app, "certificates", row.id)}
  />`;
}

// The same components as those of the other list: the tab that is chosen stays, and keeps the focus.
function authorities(app, document) {
  return html`<${RecordList}
    title="Certificate authorities" noun="certificate authority" many="certificate authorities"
    source=${path("applications", app, "certificate-authorities")} search="name"
    lead="The authorities that issue certificates of devices. They are stored, and decide nothing yet."
    above=${tabs(app, "authorities")}
    columns=${[
      { label: "Name", sort: "name", render: (row) => row.name },
      { label: "Status", sort: "status", render: (row) => html`<${Status} status=${row.status} />` },
      { label: "Certificates", number: true, render: (row) => row.caInfo.length },
      { label: "Valid until", render: (row) => html`<${Validity} info=${earliest(row.caInfo)} />` },
    ]}
    fields=${fieldsOf(document, "AuthorityPost", { only: ["name", "caBundle", "description", "status"], more: { caBundle: PEM } })}
    initial=${{ status: "active" }}
    example=${{ name: "Our authority", caBundle: "-----BEGIN CERTIFICATE-----\n...\n-----END CERTIFICATE-----\n" }}
    href=${(row) => link("/applications", app, "certificates", row.id, { tab: "authorities" })}
  />`;
}

export function Certificate({ app, certificate }) {
  const document = useDocument();
  if (route.value.query.tab === "authorities") return html`<${Authority} app=${app} authority=${certificate} document=${document} />`;
  const source = path("applications", app, "certificates", certificate);
  return html`<${RecordPage}
    noun="certificate" source=${source} title=${(record) => record.certificateInfo.commonName || record.id}
    trail=${[["Certificates", link("/applications", app, "certificates")]]} home=${link("/applications", app, "certificates")}
    fields=${fieldsOf(document, "CertificatePatch", { only: NAMES, more: fieldsFor(app), change: true })}
    actions=${(record, reload) => html`<${Switch} ...${{ source, record, reload }} />`}
    facts=${(record) => [
      ["Status", html`<${Status} status=${record.status} />`], ...infoRows(record.certificateInfo), ...listedDevices(app, record),
      ["Description", record.description || null],
    ]}
  >${(record) => html`<${Card} title="PEM"><${Snippet} text=${record.certificate} label="The certificate as PEM" /></${Card}>`}</${RecordPage}>`;
}

function Authority({ app, authority, document }) {
  const source = path("applications", app, "certificate-authorities", authority);
  const home = link("/applications", app, "certificates", { tab: "authorities" });
  return html`<${RecordPage}
    noun="certificate authority" source=${source} trail=${[["Certificate authorities", home]]} home=${home}
    fields=${fieldsOf(document, "AuthorityPatch", { only: ["name", "caBundle", "description", "status"], more: { caBundle: PEM }, change: true })}
    actions=${(record, reload) => html`<${Switch} ...${{ source, record, reload }} />`}
    facts=${(record) => [["Status", html`<${Status} status=${record.status} />`], ["Description", record.description || null]]}
  >${(record) => html`${record.caInfo.map((info) => html`<${Card} title=${info.commonName || "Certificate"}><${Facts} rows=${infoRows(info)} /></${Card}>`)}
    <${Card} title="PEM"><${Snippet} text=${record.caBundle} label="The bundle as PEM" /></${Card}>`}</${RecordPage}>`;
}
