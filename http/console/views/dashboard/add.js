// A new block of one of the usual kinds. Everything else about blocks is in the JSON editor.

import { get, path } from "../../lib/api.js";
import { html } from "../../lib/ui.js";
import { openDialog } from "../../parts/dialog.js";
import { openForm } from "../../parts/form.js";
import { JsonEditor } from "../../parts/json.js";

const KINDS = [
  ["graph", "Values over time"], ["gauge", "One value"], ["bar", "Values of devices as bars"], ["device-list", "Devices"],
  ["device-count", "Number of devices"], ["device-state-table", "States of devices"], ["event-list", "Events"],
  ["open-event-indicator", "Open events by level"], ["data-table", "Rows of a data table"], ["map", "Places of devices"], ["section-header", "Text"],
];
const OF_ATTRIBUTES = ["graph", "gauge", "bar", "map"];
const OF_DEVICES = ["graph", "gauge", "bar", "device-state-table", "map"];
const CHOICES = 100;

// Ask for a new block. Undefined if the reader changes their mind.
export async function addBlock(given) {
  const app = given || (await chooseApplication());
  if (!app) return undefined;
  const [{ attributeNames: attributes }, devices, tables] = await Promise.all([
    get(path("applications", app, "devices", "attributeNames")),
    get(path("applications", app, "devices"), { perPage: CHOICES, sortField: "name" }),
    get(path("applications", app, "data-tables"), { perPage: CHOICES, sortField: "name" }),
  ]);
  const fields = [
    { name: "kind", label: "What it shows", type: "select", options: KINDS },
    { name: "title", label: "Title" },
    { name: "attribute", label: "Attribute", type: "select", options: attributes.length ? attributes : [["", "no device has an attribute yet"]], show: ({ kind }) => OF_ATTRIBUTES.includes(kind) },
    {
      name: "device", label: "Device", type: "select", show: ({ kind }) => OF_DEVICES.includes(kind),
      options: [["", "all devices"], ...devices.items.map((each) => [each.id, each.name])],
    },
    { name: "table", label: "Data table", type: "select", options: tables.items.map((each) => [each.id, each.name]), show: ({ kind }) => kind === "data-table" },
    { name: "text", label: "Text", type: "longtext", hint: "Markdown: # heading, **bold**, - list, [text](address).", show: ({ kind }) => kind === "section-header" },
  ];
  return openForm("Add a block", { fields, button: "Add", submit: async (values) => ({ ...block(values), ...(given ? {} : { applicationId: app }) }) });
}

// Ask for what a block shall be.
export const editBlock = (app, block) => openDialog("Edit this block", (close) => html`<${JsonEditor} value=${block} save=${async (changed) => close(changed)} button="Apply" rows=${20} label="The block as JSON" />
  <div class="buttons"><button onClick=${() => close()}>Cancel</button></div>`);

// A dashboard of a user may show any application that the user reaches.
async function chooseApplication() {
  const { items } = await get("/applications", { perPage: CHOICES, sortField: "name" });
  if (!items.length) throw new Error("There is no application yet. Create one first, since a block shows something of an application.");
  const options = items.map((each) => [each.id, each.name]);
  return openForm("Of which application?", { fields: [{ name: "app", label: "Application", type: "select", options }], button: "Next", submit: ({ app }) => app });
}

function block({ kind, title, attribute, device, table, text }) {
  const choice = device ? { deviceIds: [device] } : {};
  const segment = { attribute, ...choice };
  const config = {
    graph: { segments: [segment], duration: "{{dashboard.duration}}" },
    gauge: { segment, gaugeType: "number" },
    bar: { segments: [segment] },
    "device-count": { segments: [{ id: "devices", query: "{}" }] },
    "device-state-table": choice,
    "event-list": { query: '{"state": {"$ne": "resolved"}}' },
    "data-table": { dataTableId: table },
    map: { attribute, ...choice },
    "section-header": { content: text || "" },
  }[kind];
  const short = ["gauge", "device-count", "open-event-indicator", "section-header"].includes(kind);
  return { blockType: kind, startX: 0, startY: 0, width: short ? 4 : 8, height: short ? 2 : 4, ...(title ? { title } : {}), ...(config ? { config } : {}) };
}
