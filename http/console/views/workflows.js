// The workflows of an application: their triggers, how they do, and how new ones are made.

import { get, patch, path, post } from "../lib/api.js";
import { count } from "../lib/format.js";
import { useData } from "../lib/hooks.js";
import { go, link, route, setQuery } from "../lib/router.js";
import { html, useState } from "../lib/ui.js";
import { Badge, Empty, Page, Time } from "../parts/basics.js";
import { openForm } from "../parts/form.js";
import { noted } from "../parts/notes.js";
import { RecordTable } from "../parts/table.js";
import { importWorkflows } from "./workflow/import.js";
import { usePalette } from "./workflow/palette.js";
import { definitionOf, triggerText, typeText } from "./workflow/shape.js";
import { fromTemplate, templateFields } from "./workflow/templates.js";

const CLASSES = ["cloud", "experience", "edge", "embedded", "customNode"];
const TRIGGERS_SHOWN = 3;
const isEmpty = ({ template }) => !template;
const DAY_MS = 86_400_000;

const EXAMPLE = {
  name: "say hello",
  triggers: [{ type: "virtualButton", key: "hello", meta: { label: "Say hello" }, outputIds: [["tell"]] }],
  nodes: [{ id: "tell", type: "DebugNode", config: { message: "Hello." }, meta: { label: "Tell" }, outputIds: [] }],
};

export function Workflows({ app }) {
  const [refresh, setRefresh] = useState(0);
  const { query } = route.value;
  const source = path("applications", app, "flows");
  const params = { flowClass: query.class, enabled: query.enabled, trigger: query.trigger, key: query.key };
  const href = (row) => link("/applications", app, "workflows", row.id);
  const create = async () => {
    const made = await openForm("Create a workflow", {
      fields: [
        { name: "name", label: "Name", required: true },
        { name: "description", label: "Description", type: "longtext", rows: 2 },
        ...templateFields(app),
        { name: "flowClass", label: "Class", type: "select", options: CLASSES, hint: "Where it runs. It cannot be changed later.", show: isEmpty },
        { name: "definition", label: "Triggers, nodes and globals", type: "json", rows: 8, hint: "JSON; without it, the workflow is empty and can be drawn.", show: isEmpty },
      ],
      button: "Create",
      submit: ({ name, description, flowClass, definition = {}, ...answers }) => post(source, { ...(fromTemplate(answers) || definitionOf(definition)), name, description, flowClass }),
    });
    if (made) go(made.triggers.length || made.nodes.length ? href(made) : link("/applications", app, "workflows", made.id, "edit"));
  };
  const upload = async () => {
    if (await importWorkflows(app)) setRefresh((before) => before + 1);
  };
  const enable = (row) => noted(patch(path("applications", app, "flows", row.id), { enabled: !row.enabled }), `${row.name} is ${row.enabled ? "disabled" : "enabled"}.`)
    .then(() => setRefresh((before) => before + 1));
  const columns = [
    { label: "Name", sort: "name", render: (row) => html`<span class="flow-name">${row.name}</span>` },
    { label: "Class", render: (row) => html`<${Badge}>${row.flowClass}</${Badge}>` },
    { label: "Enabled", render: (row) => html`<span class="row flow-actions"><${Badge} tone=${row.enabled ? "good" : "warn"}>${row.enabled ? "enabled" : "disabled"}</${Badge}>
      <button data-write class="small" aria-label=${`${row.enabled ? "Disable" : "Enable"} ${row.name}`} onClick=${() => enable(row)}>${row.enabled ? "Disable" : "Enable"}</button></span>` },
    { label: "Triggers", render: (row) => html`<${Triggers} triggers=${row.triggers} />` },
    { label: "Runs", number: true, render: (row) => count(row.stats.runCount) },
    { label: "Failed", number: true, render: (row) => count(row.stats.errorCount) },
    { label: "Last day", number: true, render: (row) => html`<${LastDay} source=${path("applications", app, "flows", row.id)} last=${row.stats.lastRun} />` },
    { label: "Last run", render: (row) => (row.stats.lastRun ? html`<${Time} at=${row.stats.lastRun} age />` : html`<span class="quiet nowrap">${row.stats.runCount ? "not lately" : "never"}</span>`) },
    { label: "Changed", sort: "lastUpdated", render: (row) => html`<${Time} at=${row.lastUpdated} />` },
  ];
  const lead = "A workflow runs when one of its triggers fires: a report of a device, a time, a press of a button.";
  const button = html`<button class="primary" data-create onClick=${create}>Create a workflow</button>`;
  const actions = html`<button data-write onClick=${upload}>Import</button>${button}`;
  const empty = html`<${Empty} title="There are no workflows yet" call=${{ method: "POST", path: source, body: EXAMPLE }}><div>${button}</div></${Empty}>`;
  return html`<${Page} title="Workflows" lead=${lead} actions=${actions}>
    <${RecordTable} noun="workflow" source=${(asked, signal) => get(source, listQuery(asked), { signal })} params=${params} columns=${columns} href=${href}
      filters=${html`<${Filters} app=${app} query=${query} />`} empty=${empty} refresh=${refresh} />
  </${Page}>`;
}

// Only a query selects workflows of all classes; beside it the other filters of the list have no effect.
function listQuery({ flowClass, enabled, trigger, key, filterField, filter, ...paging }) {
  const query = {};
  if (flowClass) query.flowClass = flowClass;
  if (enabled) query.enabled = enabled === "true";
  if (trigger) query.triggers = { type: trigger, ...(key ? { key } : {}) };
  if (filter) query.name = { $contains: filter.slice(1, -1), $ci: true };
  return { ...paging, query };
}

function Filters({ app, query }) {
  const palette = usePalette(app).value;
  const triggers = palette ? palette.triggerTypes.map(({ type }) => type) : [query.trigger].filter(Boolean);
  const choose = (name, label, options) => html`<label class="row">${label} <select value=${query[name] || ""} onChange=${(event) => setQuery({ [name]: event.target.value, key: "", page: "" })}>
      <option value="" selected=${!query[name]}>all</option>
      ${options.map(([value, text]) => html`<option value=${value} selected=${query[name] === value}>${text}</option>`)}</select></label>`;
  return html`${choose("class", "Class", CLASSES.map((each) => [each, each]))}
    ${choose("enabled", "State", [["true", "enabled"], ["false", "disabled"]])}
    ${choose("trigger", "Trigger", triggers.map((each) => [each, typeText(each)]))}
    ${query.key && html`<span class="row"><span class="tag">key ${query.key}</span><button class="small" onClick=${() => setQuery({ key: "", page: "" })}>All keys</button></span>`}`;
}

function Triggers({ triggers }) {
  const shown = triggers.slice(0, TRIGGERS_SHOWN).map((each) => html`<div>${typeText(each.type)} <span class="quiet break">${triggerText(each)}</span></div>`);
  return html`${shown}${triggers.length > TRIGGERS_SHOWN && html`<div class="quiet">${triggers.length - TRIGGERS_SHOWN} more</div>`}`;
}

// Runs and failures of the last day. Asked only for workflows that ran in it.
function LastDay({ source, last }) {
  const isNew = Boolean(last) && Date.now() - Date.parse(last) < DAY_MS;
  const data = useData((signal) => (isNew ? get(source + "/stats", { duration: DAY_MS, resolution: DAY_MS }, { signal }) : Promise.resolve({ metrics: [] })), [source, last]);
  if (!data.value) return data.error ? html`<span title=${data.error.message}>?</span>` : "";
  const sum = (name) => data.value.metrics.reduce((total, each) => total + each[name], 0);
  const failed = sum("pathsFailed");
  return html`${count(sum("runCount"))}${failed > 0 && html` <${Badge} tone="bad">${count(failed)} failed</${Badge}>`}`;
}
