// Import workflows from files, and export one as a file that can be imported.

import { get, path, post } from "../../lib/api.js";
import { exactJson, parseExact } from "../../lib/exact.js";
import { plural } from "../../lib/format.js";
import { link } from "../../lib/router.js";
import { html, useId, useState } from "../../lib/ui.js";
import { Notice, Problem } from "../../parts/basics.js";
import { openDialog, useOpen } from "../../parts/dialog.js";
import { note } from "../../parts/notes.js";

const VERSIONS_A_CALL = 100;

// True if something was imported.
export async function importWorkflows(app) {
  let done = false;
  const late = await openDialog("Import workflows", (close) => html`<${Import} app=${app} close=${close} imported=${() => { done = true; }} />`);
  if (late?.flows) await openDialog("Import workflows", (close) => html`<${Imported} ...${{ app, result: late, close }} />`);
  return done;
}

function Import({ app, close, imported }) {
  const id = useId();
  const [text, setText] = useState("");
  const [files, setFiles] = useState([]);
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const [result, setResult] = useState(null);
  const open = useOpen();
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      const sources = await Promise.all(files.map(async (file) => [file.name, await file.text()]));
      if (text.trim()) sources.push(["the text", text]);
      if (!sources.length) throw new Error("Choose a file or paste JSON.");
      const body = { flows: [], flowVersions: [] };
      for (const [name, given] of sources) add(body, name, given);
      const work = post(path("applications", app, "flows", "import"), body);
      close.during(work);
      setResult(await work);
      imported();
      close.during(null); // the dialog shows the answer itself
    } catch (failure) {
      if (!open()) note(failure.message, "bad");
      setError(failure);
    }
    setBusy(false);
  };
  if (result) return html`<${Imported} ...${{ app, result, close }} />`;
  return html`<form class="form" onSubmit=${submit}>
    <p>Files of JSON: exports with <code>flows</code> and <code>flowVersions</code>, single workflows, or arrays of them. All of them are created, or none. Exports as YAML are converted by <code>trunkline flow convert</code>.</p>
    <div class="field"><label for=${id + "f"}>Files</label><input id=${id + "f"} type="file" multiple accept=".json,application/json" onChange=${(event) => setFiles([...event.target.files])} /></div>
    <div class="field"><label for=${id + "t"}>Or JSON</label><textarea id=${id + "t"} rows="8" spellcheck=${false} value=${text} onInput=${(event) => setText(event.target.value)}></textarea></div>
    <${Problem} error=${error} />
    <div class="buttons"><button type="button" onClick=${() => close()}>Cancel</button><button class="primary" disabled=${busy}>Import</button></div>
  </form>`;
}

// Add what a text has to the body of the import.
function add(body, name, text) {
  let given;
  try {
    given = parseExact(text);
  } catch (error) {
    throw new Error(`${name} is not JSON: ${error.message}.`);
  }
  if (Array.isArray(given)) body.flows.push(...given);
  else if (Array.isArray(given?.flows) || Array.isArray(given?.flowVersions)) {
    body.flows.push(...(given.flows || []));
    body.flowVersions.push(...(given.flowVersions || []));
  } else if (typeof given?.name === "string") body.flows.push(given);
  else throw new Error(`${name} has no workflow: it must be an object with flows, a workflow with a name, or an array of workflows.`);
}

function Imported({ app, result, close }) {
  const problems = result.flows.reduce((total, each) => total + (each.problems?.length || 0), 0);
  return html`<div class="stack">
    <${Notice} tone=${problems ? "warn" : "good"}>${plural(result.flows.length, "workflow")} and ${plural(result.flowVersions.length, "version")} were imported.
      ${problems ? ` ${plural(problems, "part")} of them cannot run on this server as they are meant.` : ""}</${Notice}>
    ${result.flows.map((flow) => html`<div><a href=${link("/applications", app, "workflows", flow.id)} onClick=${() => close()}>${flow.name}</a>
      ${flow.problems?.length > 0 && html`<ul>${flow.problems.map((each) => html`<li>${each.nodeLabel || each.nodeId || each.nodeType}: ${each.message}</li>`)}</ul>`}</div>`)}
    <div class="buttons"><button class="primary" onClick=${() => close(true)}>Close</button></div>
  </div>`;
}

// Write a workflow with all of its versions to a file.
export async function exportWorkflow(app, flow) {
  const source = path("applications", app, "flows", flow);
  const record = await get(source, {}, { exact: true });
  const flowVersions = [];
  for (let page = 0, total = 1; flowVersions.length < total; page++) {
    const list = await get(source + "/versions", { page, perPage: VERSIONS_A_CALL, sortField: "creationDate" }, { exact: true });
    flowVersions.push(...list.items);
    total = list.items.length ? list.totalCount : 0;
  }
  const address = URL.createObjectURL(new Blob([exactJson({ flows: [record], flowVersions }, 2)], { type: "application/json" }));
  const anchor = document.createElement("a");
  anchor.href = address;
  anchor.download = `${record.name.replace(/[^\w.-]+/g, "-")}.json`;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
