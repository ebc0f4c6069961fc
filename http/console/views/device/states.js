// The states that a device reported: a table with a column for each attribute, a form that sends one, and their export.

import { path, post } from "../../lib/api.js";
import { unitOf, valueText, withUnit } from "../../lib/format.js";
import { link, route, setQuery } from "../../lib/router.js";
import { html } from "../../lib/ui.js";
import { Empty, Time } from "../../parts/basics.js";
import { openForm } from "../../parts/form.js";
import { openJob } from "../../parts/job.js";
import { Json } from "../../parts/json.js";
import { note } from "../../parts/notes.js";
import { Log, useLog } from "./log.js";

const COLUMNS_FIRST = 8;
const FIELDS_MAX = 30;
const VALUE_CHARS = 200;
const TIME = " time"; // no attribute has a blank in its name

export function StatesTab({ app, device, record }) {
  const home = path("applications", app, "devices", device);
  const log = useLog(`${home}/state`);
  const actions = html`<button onClick=${log.reload}>Load again</button>
    <button data-create onClick=${() => send(home, record, log.reload)}>Send a state</button>
    <button onClick=${() => exportStates(app, home, shownColumns(record), record)}>Download as CSV</button>`;
  const shown = shownColumns(record);
  return html`${record.attributes.length > 1 && html`<${Columns} attributes=${record.attributes} shown=${shown} />`}
    <${Log} title="States" noun="state" log=${log} actions=${actions}
    columns=${(entries) => [
      { label: "Time", render: (row) => html`<${Time} at=${row.time} />` },
      ...shown.map((each) => ({ label: withUnit(each.name, unitOf(each) && `(${unitOf(each)})`), number: each.dataType === "number", render: (row) => Object.hasOwn(row.data, each.name) && shortened(row.data[each.name]) })),
      entries.some((row) => row.meta !== undefined) && { label: "Meta", render: (row) => row.meta !== undefined && html`<${Json} value=${row.meta} />` },
      entries.some((row) => row.flowVersion) && { label: "Workflow version", render: (row) => row.flowVersion },
    ].filter(Boolean)}
    empty=${html`<${Empty} title="This device has not reported yet">
      ${record.attributes.length ? html`<p>Each state that the device reports is a row here.</p>
        <div data-write><a class="button primary" href=${link("/applications", app, "devices", device, "connect")}>Connect this device</a></div>`
        : html`<p>A device reports values of the attributes that it declares, and it declares none.</p>
        <div data-write><a class="button primary" href=${link("/applications", app, "devices", device, "settings")}>Declare an attribute</a></div>`}</${Empty}>`} />`;
}

// The attributes with a column: those of the address, else the first ones.
function shownColumns({ attributes }) {
  const { columns } = route.value.query;
  if (!columns) return attributes.slice(0, COLUMNS_FIRST);
  const names = columns.split(",");
  return attributes.filter((each) => names.includes(each.name));
}

function Columns({ attributes, shown }) {
  const toggle = (attribute) => {
    const changed = attributes.filter((each) => shown.includes(each) !== (each === attribute)).map((each) => each.name);
    setQuery({ columns: changed.length ? changed.join(",") : "-" });
  };
  return html`<details class="card"><summary>Columns: ${shown.length} of ${attributes.length} attributes</summary>
    <div class="row apart" role="group" aria-label="Columns">${attributes.map((each) => html`<label key=${each.name} class="break"><input type="checkbox" checked=${shown.includes(each)} onChange=${() => toggle(each)} /> ${each.name}</label>`)}</div></details>`;
}

function shortened(value) {
  const text = valueText(value);
  return html`<span class=${text.length > 40 ? "mono long" : "mono"}>${text.slice(0, VALUE_CHARS)}${text.length > VALUE_CHARS && "…"}</span>`;
}

function example(record) {
  const [first] = record.attributes;
  return first ? { [first.name]: { number: 21.5, boolean: true }[first.dataType] ?? "text" } : { temperature: 21.5 };
}

// A field for each attribute; the server takes texts for numbers, and says which value does not fit.
async function send(home, record, reload) {
  const single = record.attributes.length <= FIELDS_MAX;
  const fields = single
    ? record.attributes.map(({ name, dataType }) => ({
      name, label: name, hint: dataType, ...(dataType === "boolean" ? { type: "select", options: [["", "not sent"], "true", "false"] } : {}),
    }))
    : [{ name: "data", label: "Values by attribute", type: "json", required: true, value: example(record) }];
  const sent = await openForm("Send a state", {
    fields: [...fields, { name: TIME, label: "Time", type: "time", hint: "Empty: now." }], button: "Send",
    submit: ({ [TIME]: time, ...values }) => post(`${home}/state`, { data: single ? values : values.data, time }),
  });
  if (!sent) return;
  note("The state is stored.");
  reload();
}

// With the attributes that have a column. The server writes all states in the range, not only those that are shown.
async function exportStates(app, home, shown, record) {
  let answer;
  await openForm("Download the states as CSV", {
    fields: [
      { name: "start", label: "From", type: "time" }, { name: "end", label: "To", type: "time" },
      { name: "attributes", label: "Attributes", type: "lines", rows: 3, hint: "One a line, each gets a column. Empty: all.", value: shown.length < record.attributes.length ? shown.map((each) => each.name) : [] },
      { name: "blobs", label: "With the values of blobs", type: "checkbox" },
    ],
    button: "Make the file",
    submit: async ({ blobs, ...values }) => { answer = await post(`${home}/export`, { ...values, options: { includeBlobData: blobs } }); },
  });
  if (answer) await openJob("Export of states", app, answer.jobId);
}
