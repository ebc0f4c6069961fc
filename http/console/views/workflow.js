// One workflow: its picture, its draft, its versions, and what became of its runs.

import { mayChange } from "../lib/access.js";
import { del, get, patch, path } from "../lib/api.js";
import { useData } from "../lib/hooks.js";
import { go, link, route } from "../lib/router.js";
import { html } from "../lib/ui.js";
import { Badge, Loaded, Page, Tabs } from "../parts/basics.js";
import { confirmed } from "../parts/dialog.js";
import { noted } from "../parts/notes.js";
import { Data } from "./workflow/data.js";
import { forgetDraft } from "./workflow/draft.js";
import { Edit } from "./workflow/edit.js";
import { Errors } from "./workflow/errors.js";
import { GraphTab } from "./workflow/graph-tab.js";
import { exportWorkflow } from "./workflow/import.js";
import { Run } from "./workflow/run.js";
import { Runs } from "./workflow/runs.js";
import { Try } from "./workflow/try.js";
import { Versions } from "./workflow/versions.js";

const TABS = [
  ["graph", "Graph", GraphTab],
  ["edit", "Edit", Edit],
  ["versions", "Versions", Versions],
  ["runs", "Runs", RunsTab],
  ["errors", "Errors", Errors],
  ["try", "Try", Try],
  ["data", "Data", Data],
];

const WRITING = ["edit", "try"]; // of use to who may change the workflow

function RunsTab(given) {
  const { run } = route.value.query;
  return run ? html`<${Run} ...${given} run=${run} />` : html`<${Runs} ...${given} />`;
}

export function Workflow({ app, flow, tab = "graph" }) {
  const source = path("applications", app, "flows", flow);
  const data = useData((signal) => get(source, { includeCustomNodes: true }, { signal, exact: true }), [source]);
  const home = link("/applications", app, "workflows");
  const record = data.value;
  const [, , View] = TABS.find(([key]) => key === tab) || TABS[0];
  const address = (key) => (key === "graph" ? link("/applications", app, "workflows", flow) : link("/applications", app, "workflows", flow, key));
  const enable = () => noted(patch(source, { enabled: !record.enabled }), record.enabled ? "Disabled: its triggers start nothing." : "Enabled.").then(data.reload);
  const remove = async () => {
    const done = await confirmed({
      title: "Delete this workflow?", text: html`<b>${record.name}</b> is deleted for good, with its versions, its storage and its runs.`, act: () => del(source),
    });
    if (!done) return;
    forgetDraft(flow);
    go(home);
  };
  const actions = record && html`<${Badge}>${record.flowClass}</${Badge}><${Badge} tone=${record.enabled ? "good" : "warn"}>${record.enabled ? "enabled" : "disabled"}</${Badge}>
    <button data-write onClick=${enable}>${record.enabled ? "Disable" : "Enable"}</button><button onClick=${() => noted(exportWorkflow(app, flow))}>Export</button><button class="danger" onClick=${remove}>Delete</button>`;
  return html`<${Page} trail=${[["Workflows", home]]} title=${record?.name || "Workflow"} lead=${record?.description} actions=${actions} of=${data}>
    <${Tabs} items=${TABS.filter(([key]) => mayChange() || !WRITING.includes(key)).map(([key, text]) => [key, text, address(key)])} current=${tab} label="Parts of the workflow" />
    <${Loaded} data=${data}>${(value) => html`<${View} key=${tab} ...${{ app, flow, source, record: value, reload: data.reload }} />`}</${Loaded}>
  </${Page}>`;
}
