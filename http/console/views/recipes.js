// Device recipes: what new devices look like, and the creation of many from one.

import { offered } from "../lib/access.js";
import { path, post } from "../lib/api.js";
import { plural, unitOf, withUnit } from "../lib/format.js";
import { link } from "../lib/router.js";
import { html, useId, useState } from "../lib/ui.js";
import { Badge, Card, Notice, Problem, Snippet, Tags, Time } from "../parts/basics.js";
import { openJob } from "../parts/job.js";
import { RecordList, RecordPage } from "../parts/records.js";
import { DATA_TYPES } from "./device/fields.js";
import { CLASSES } from "./devices/choice.js";
import { CsvReader } from "./table/csv.js";

const LEAD = "A recipe holds the class, the tags and the attributes of devices that are created from it.";
const EDITABLE = ["name", "description", "deviceName", "deviceDescription", "deviceClass", "gatewayId", "parentId", "systemInterval", "keepDuplicates", "expectedIntervalSeconds", "tags", "attributes"];
const HEADER_CHARS_MAX = 50_000; // more than a header of names that the server takes
const ATTRIBUTES_HINT = `Types: ${DATA_TYPES.join(", ")}.`;

const fields = (created) => [
  { name: "name", label: "Name of the recipe", required: true },
  { name: "description", label: "Description of the recipe", type: "longtext", rows: 2, blank: created ? undefined : "" },
  { name: "deviceName", label: "Name of its devices", hint: "Without it they are called as the recipe.", blank: created ? undefined : "" },
  { name: "deviceDescription", label: "Description of its devices", type: "longtext", rows: 2, blank: created ? undefined : "" },
  { name: "deviceClass", label: "Class", type: "select", options: CLASSES },
  { name: "expectedIntervalSeconds", label: "Its devices report every so many seconds", type: "number", hint: "Without it this is learned from what each device reports.", blank: created ? undefined : null },
  { name: "tags", label: "Tags", type: "tags", rows: 3, hint: "One key=value a line.", blank: created ? undefined : [] },
  { name: "attributes", label: "Attributes", type: "json", rows: 6, hint: ATTRIBUTES_HINT, placeholder: '[{"name": "temperature", "dataType": "number", "attributeTags": {"unit": "\u00b0C"}}]', blank: created ? undefined : [] },
];

export function Recipes({ app }) {
  const home = link("/applications", app, "devices");
  return html`<${RecordList} title="Recipes" noun="recipe" lead=${LEAD} trail=${[["Devices", home]]}
    source=${path("applications", app, "device-recipes")} fields=${fields(true)}
    example=${{ name: "Pump", attributes: [{ name: "temperature", dataType: "number" }] }}
    href=${(row) => link("/applications", app, "recipes", row.id)}
    columns=${[
      { label: "Name", sort: "name", render: (row) => row.name },
      { label: "Class", render: (row) => row.deviceClass },
      { label: "Attributes", render: (row) => row.attributes.map((each) => each.name).join(", ") },
      { label: "Tags", render: (row) => html`<${Tags} tags=${row.tags} />` },
      { label: "Changed", sort: "lastUpdated", render: (row) => html`<${Time} at=${row.lastUpdated} />` },
    ]} />`;
}

export function Recipe({ app, recipe }) {
  const source = path("applications", app, "device-recipes", recipe);
  return html`<${RecordPage} noun="recipe" source=${source} fields=${fields(false)} editable=${EDITABLE}
    trail=${[["Recipes", link("/applications", app, "recipes")]]} home=${link("/applications", app, "recipes")}
    facts=${(record) => [
      ["Description", record.description], ["Name of its devices", record.deviceName || record.name],
      ["Class", html`<${Badge}>${record.deviceClass}</${Badge}>`],
      ["Tags", record.tags.length ? html`<${Tags} tags=${record.tags} />` : null],
      ["Attributes", record.attributes.length ? record.attributes.map((each) => `${each.name} (${withUnit(each.dataType, unitOf(each))})`).join(", ") : "none"],
    ]}>${(record) => html`<${Many} ...${{ app, source, record }} />`}</${RecordPage}>`;
}

// Create many devices: each line of a CSV is one, or so many that are all the same.
function Many({ app, source, record }) {
  const [way, setWay] = useState("csv");
  const [csv, setCsv] = useState("");
  const [columns, setColumns] = useState({});
  const [given, setGiven] = useState({ count: "10", keys: false });
  const [results, setResults] = useState([]); // the newest first; all stay, since secrets are shown once
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const id = useId();
  const headers = headersOf(csv);
  const read = async (event) => {
    const [file] = event.target.files;
    if (file) setCsv(await file.text());
  };
  const create = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    const chosen = Object.fromEntries(Object.entries(columns).filter(([, column]) => headers.includes(column)));
    const body = { ...(way === "csv" ? { csv, ...chosen } : { count: Number(given.count) }), makeUniqueKeySecret: given.keys };
    try {
      const answer = await post(`${source}/bulkCreate`, body);
      if (answer.jobId) await openJob("Creation of devices", app, answer.jobId);
      else setResults((before) => [{ answer, keys: given.keys }, ...before]);
    } catch (failure) {
      setError(failure);
    }
    setBusy(false);
  };
  const column = (name, label) => html`<div class="field"><label for=${id + name}>${label}</label>
    <select id=${id + name} onChange=${(event) => setColumns({ ...columns, [name]: event.target.value })}>
      <option value="">none</option>${headers.map((each) => html`<option value=${each} selected=${columns[name] === each}>${each}</option>`)}</select></div>`;
  return html`<${Card} title="Create devices from this recipe" data-write>
    <form class="form" onSubmit=${create}>
      <div class="row" role="group" aria-label="What is created">
        <button type="button" class="small" aria-pressed=${way === "csv"} onClick=${() => setWay("csv")}>A device for each line of a CSV</button>
        <button type="button" class="small" aria-pressed=${way === "count"} onClick=${() => setWay("count")}>Some that are all the same</button></div>
      ${way === "csv" ? html`
        <div class="field"><label for=${id + "f"}>File</label><input id=${id + "f"} type="file" accept=".csv,text/csv" onChange=${read} /></div>
        <div class="field"><label for=${id + "c"}>CSV with a header</label>
          <textarea id=${id + "c"} rows="6" spellcheck=${false} placeholder=${"name,floor\npump-1,1\npump-2,2"} value=${csv} onInput=${(event) => setCsv(event.target.value)}></textarea>
          <span class="hint">Columns that are not named below are tags: the header is the key.</span></div>
        ${headers.length > 0 && html`<div class="columns">${column("nameColumn", "Column of the names")}${column("descriptionColumn", "Column of the descriptions")}
          ${column("gatewayIdColumn", "Column of the ids of gateways")}${column("parentIdColumn", "Column of the ids of parents")}</div>`}`
      : html`<div class="field"><label for=${id + "n"}>Number of devices</label>
          <input id=${id + "n"} inputmode="numeric" value=${given.count} onInput=${(event) => setGiven({ ...given, count: event.target.value })} /></div>`}
      ${offered("keys") !== "read" && html`<div class="field inline"><input id=${id + "k"} type="checkbox" checked=${given.keys} onChange=${(event) => setGiven({ ...given, keys: event.target.checked })} />
        <label for=${id + "k"}>With an access key for each device</label></div>`}
      ${given.keys && html`<p class="quiet">The secrets are shown once, so at most 100 devices can have them in a call.</p>`}
      <${Problem} error=${error} />
      <div><button class="primary" disabled=${busy || (way === "csv" && !csv.trim())}>Create devices</button></div>
    </form>
    ${results.map(({ answer, keys }, at) => html`<${Result} key=${results.length - at} ...${{ app, result: answer, record, keys }} />`)}
  </${Card}>`;
}

function Result({ app, result, record, keys }) {
  const url = `data:text/csv;charset=utf-8,${encodeURIComponent(result.csvResult)}`;
  return html`<div class="stack apart" role="status">
    <${Notice} tone=${result.failed ? "warn" : "good"}>${plural(result.created, "device")} created${result.failed ? `, ${plural(result.failed, "line")} refused: the column error says why` : ""}.
      ${keys && html` <b>The secrets are shown now and never again.</b>`}</${Notice}>
    <${Snippet} text=${result.csvResult} label="The lines with the ids of the devices" />
    <div class="row"><a class="button" href=${url} download=${`${record.name}.csv`}>Download as CSV</a>
      <a class="button" href=${link("/applications", app, "devices", { sort: "creationDate", direction: "desc" })}>See the devices</a></div></div>`;
}

// The names in the header of a CSV, as the server reads them.
function headersOf(csv) {
  const reader = new CsvReader();
  const records = reader.push(csv.slice(0, HEADER_CHARS_MAX));
  const [first] = records.length || reader.fault ? records : reader.end();
  return [...new Set((first?.fields || []).map((name) => name?.trim()).filter(Boolean))];
}
