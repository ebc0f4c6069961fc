// The states that a device reported: the raw history, a form that sends one, their export and their removal.

import { del, path, post, queryString } from "../../lib/api.js";
import { valueText } from "../../lib/format.js";
import { html } from "../../lib/ui.js";
import { Empty, Time } from "../../parts/basics.js";
import { confirmed } from "../../parts/dialog.js";
import { openForm } from "../../parts/form.js";
import { openJob } from "../../parts/job.js";
import { Json } from "../../parts/json.js";
import { note } from "../../parts/notes.js";
import { Log, useLog } from "./log.js";

const FIELDS_MAX = 30;
const VALUE_CHARS = 200;
const TIME = " time"; // no attribute has a blank in its name

export function StatesTab({ app, device, record }) {
  const home = path("applications", app, "devices", device);
  const log = useLog(`${home}/state`);
  const actions = html`<button onClick=${log.reload}>Load again</button>
    <button data-create onClick=${() => send(home, record, log.reload)}>Send a state</button>
    <button onClick=${() => exportStates(app, home)}>Export</button>
    <button class="danger" onClick=${() => removeData(app, home, record, log.reload)}>Remove data</button>`;
  return html`<${Log} title="States" noun="state" log=${log} actions=${actions}
    columns=${(entries) => [
      { label: "Time", render: (row) => html`<${Time} at=${row.time} />` },
      { label: "Values", render: (row) => html`<span class="row">${Object.entries(row.data).map(([name, value]) => html`<span class="value"><span class="quiet">${name}</span> ${shortened(value)}</span>`)}</span>` },
      entries.some((row) => row.meta !== undefined) && { label: "Meta", render: (row) => row.meta !== undefined && html`<${Json} value=${row.meta} />` },
      entries.some((row) => row.flowVersion) && { label: "Workflow version", render: (row) => row.flowVersion },
    ].filter(Boolean)}
    empty=${html`<${Empty} title="This device has not reported yet" call=${{ method: "POST", path: `${home}/state`, body: { data: example(record) } }}>
      <p>${record.attributes.length ? "Send a state here, or by a call:" : "Declare an attribute in Live first: only declared attributes are accepted."}</p></${Empty}>`} />`;
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

async function exportStates(app, home) {
  let answer;
  await openForm("Export the states as CSV", {
    fields: [
      { name: "start", label: "From", type: "time" }, { name: "end", label: "To", type: "time" },
      { name: "attributes", label: "Attributes", type: "lines", rows: 3, hint: "One a line, each gets a column. Empty: all." },
      { name: "blobs", label: "With the values of blobs", type: "checkbox" },
    ],
    button: "Export",
    submit: async ({ blobs, ...values }) => { answer = await post(`${home}/export`, { ...values, options: { includeBlobData: blobs } }); },
  });
  if (answer) await openJob("Export of states", app, answer.jobId);
}

// Asks for the range first, then for the name of the device, since what is removed is gone.
async function removeData(app, home, record, reload) {
  const range = await openForm("Remove data", {
    fields: [
      { name: "start", label: "From", type: "time" }, { name: "end", label: "To", type: "time", hint: "Empty: up to now." },
      { name: "attributes", label: "Attributes", type: "lines", rows: 3, hint: "One a line: only their values are removed. Empty: all states, commands and the connection log." },
    ],
    button: "Go on", submit: async (values) => values,
  });
  if (!range) return;
  const { attributes, ...span } = range;
  let answer;
  await confirmed({
    title: "Remove data?", typed: record.name, button: "Remove data",
    text: attributes ? `The values of ${attributes.join(", ")} in this range are removed for good.` : "All states, commands and entries of the connection log in this range are removed for good.",
    act: async () => {
      answer = attributes
        ? await post(path("applications", app, "devices", "removeData"), { query: { id: record.id }, ...span, attributes })
        : await del(`${home}/data${queryString(span)}`);
    },
  });
  if (answer) await openJob("Removal of data", app, answer.jobId, reload);
}
