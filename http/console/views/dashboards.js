// The dashboards of an application, and all that the user reaches.

import { path } from "../lib/api.js";
import { count } from "../lib/format.js";
import { link } from "../lib/router.js";
import { html } from "../lib/ui.js";
import { Badge, Time } from "../parts/basics.js";
import { RecordList } from "../parts/records.js";
import { FIELDS } from "./dashboard/fields.js";
import { deviceBoard, fleetBoard } from "./dashboard/templates.js";

const LEAD = "A dashboard shows charts, values and lists side by side, and can be shared by a link.";
const COLUMNS = [
  { label: "Name", sort: "name", render: (row) => row.name },
  { label: "Description", render: (row) => row.description },
  { label: "Blocks", number: true, render: (row) => count(row.blocks.length) },
  { label: "Shared", render: (row) => html`<${Sharing} dashboard=${row} />` },
  { label: "Changed", sort: "lastUpdated", render: (row) => html`<${Time} at=${row.lastUpdated} />` },
];

export function AllDashboards() {
  const owner = (row) => row.applicationName || row.organizationName || "you";
  return html`<${RecordList} title="Dashboards" noun="dashboard" source="/dashboards" lead=${LEAD + " These are yours, and those of your applications and organizations."}
    columns=${COLUMNS.toSpliced(1, 0, { label: "Of", render: owner })} fields=${FIELDS} example=${{ name: "My dashboard" }}
    href=${(row) => (row.applicationId ? link("/applications", row.applicationId, "dashboards", row.id) : link("/dashboards", row.id))} />`;
}

// A new dashboard is empty, or begins with what devices report.
const beginning = (app) => [
  FIELDS[0],
  { name: "begin", label: "Begins with", type: "select", options: [["", "nothing"], ["fleet", "all devices: health, events, newest values, places"], ["device", "one device: newest values, charts, states, connections"]] },
  { name: "device", label: "Device", type: "records", single: true, source: path("applications", app, "devices"), show: ({ begin }) => begin === "device" },
  ...FIELDS.slice(1),
];

// What the form of a new dashboard says goes before what is made of the reports.
async function bodyOf(app, { begin, device, ...values }) {
  if (!begin || !values.name) return values;
  if (begin === "device" && !device?.length) throw new Error("device: choose the device that the dashboard shows.");
  const made = begin === "fleet" ? await fleetBoard(app) : await deviceBoard(app, device[0]);
  return { ...made, ...values };
}

export function Dashboards({ app }) {
  return html`<${RecordList}
    title="Dashboards" noun="dashboard" source=${path("applications", app, "dashboards")}
    lead=${LEAD} columns=${COLUMNS} fields=${beginning(app)} toBody=${(values) => bodyOf(app, values)}
    example=${{ name: "My dashboard", blocks: [{ blockType: "device-list", startX: 0, startY: 0, width: 4, height: 3, title: "Devices" }] }}
    href=${(row) => link("/applications", app, "dashboards", row.id)}
  />`;
}

// Who may see a dashboard.
export function Sharing({ dashboard }) {
  if (!dashboard.public) return html`<span class="quiet">no</span>`;
  return html`<${Badge} tone="warn">${dashboard.isPasswordProtected ? "with password" : "public"}</${Badge}>`;
}
