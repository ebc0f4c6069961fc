// The draft of a workflow as JSON, with its picture. The server checks it when it is saved.

import { patch } from "../../lib/api.js";
import { link, route } from "../../lib/router.js";
import { session } from "../../lib/session.js";
import { effect, html, useEffect, useMemo, useRef, useState } from "../../lib/ui.js";
import { Card, Notice, Problem } from "../../parts/basics.js";
import { openForm } from "../../parts/form.js";
import { note } from "../../parts/notes.js";
import { Graph } from "./graph.js";
import { pathOf, pathOfPart, rangeOf } from "./place.js";
import { definitionOf } from "./shape.js";

const LINE_PX = 20;
// Texts that are not saved yet, by workflow: {text, base (the text that was changed), etag}. They outlive a change of the
// tab, not a reload, and not the log-in: the next person at this browser gets nothing of the last one.
const drafts = new Map();
addEventListener("beforeunload", (event) => drafts.size && event.preventDefault());
effect(() => { if (!session.value) drafts.clear(); });

export const forgetDraft = (flow) => drafts.delete(flow);

// The definition of a text that is not saved; null if there is none, or it is not JSON.
export const draftOf = (flow) => (drafts.has(flow) && parse(drafts.get(flow).text).value) || null;

const textOf = (record) => JSON.stringify(definitionOf(record), null, 2);

export function Edit({ app, flow, source, record, reload }) {
  const { query } = route.value;
  const [text, setText] = useState(() => drafts.get(flow)?.text ?? textOf(record));
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const field = useRef(null);
  const parsed = useMemo(() => parse(text), [text]);
  const shown = useRef({});
  if (parsed.value) shown.current = parsed.value;
  const changed = text !== textOf(record);
  // A new name or state of the workflow leaves its draft as it was.
  const stale = changed && drafts.has(flow) && drafts.get(flow).base !== textOf(record);
  useEffect(() => { if (!drafts.has(flow)) setText(textOf(record)); }, [record]);

  const type = (value) => {
    if (value === textOf(record)) drafts.delete(flow);
    else drafts.set(flow, { base: textOf(record), etag: record._etag, ...drafts.get(flow), text: value });
    setText(value);
  };
  const undo = () => {
    drafts.delete(flow);
    setText(textOf(record));
    setError(null);
  };
  const show = (path) => path && parsed.value && select(field.current, rangeOf(text, path));
  useEffect(() => { if (query.node && parsed.value) show(pathOfPart(parsed.value, query.node)); }, [query.node]);
  const save = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      // Parts that were removed from the text are emptied.
      const body = { triggers: [], nodes: [], globals: [], ...parsed.value };
      const etag = stale ? drafts.get(flow).etag : record._etag;
      const saved = await patch(source, body, { headers: { "if-match": etag } });
      drafts.delete(flow);
      setText(textOf(saved));
      note("The draft is saved.");
      await reload();
    } catch (failure) {
      setError(failure);
      const path = pathOf(failure.message);
      if (path) select(field.current, rangeOf(text, path));
    }
    setBusy(false);
  };
  const describe = async () => {
    const done = await openForm("Name and description", {
      fields: [{ name: "name", label: "Name", required: true }, { name: "description", label: "Description", type: "longtext", blank: "" }],
      initial: record, submit: (values) => patch(source, values),
    });
    if (done) reload();
  };
  const path = error && pathOf(error.message);
  const runsNow = record.enabled && !record.defaultVersionId;
  return html`
    <${Notice} tone=${runsNow ? "warn" : ""}>${runsNow
      ? html`This draft (<code>develop</code>) is what runs: what you save takes effect at once. Make a <a href=${link("/applications", app, "workflows", flow, "versions")}>version</a> the default to keep the two apart.`
      : html`This draft (<code>develop</code>) does not run by default. <a href=${link("/applications", app, "workflows", flow, "try", { version: "develop" })}>Try it</a> without effects, then make a <a href=${link("/applications", app, "workflows", flow, "versions")}>version</a> of it.`}</${Notice}>
    ${stale && html`<${Notice} tone="warn">The draft was saved by somebody else while you changed it. Copy your text, undo your changes, and make them again.</${Notice}>`}
    <div class="flow-edit">
      <${Card} title="Triggers, nodes and globals" actions=${html`<button class="small" onClick=${describe}>Name and description</button>`}>
        <form onSubmit=${save} class="stack">
          <textarea ref=${field} aria-label="The draft as JSON" rows="28" spellcheck=${false} value=${text} readOnly=${busy} onInput=${(event) => type(event.target.value)}
            aria-invalid=${parsed.error ? "true" : undefined} onKeyDown=${(event) => event.key === "s" && (event.ctrlKey || event.metaKey) && changed && !parsed.error && !busy && save(event)}></textarea>
          ${parsed.error && html`<p class="quiet" role="status">This is not JSON yet: ${parsed.error}</p>`}
          <${Problem} error=${error} />
          ${path && parsed.value && html`<div><button type="button" class="small" onClick=${() => show(path)}>Show the place</button></div>`}
          <div class="row"><button class="primary" disabled=${busy || Boolean(parsed.error) || !changed}>Save</button>
            ${changed && !parsed.error && html`<a class="button" href=${link("/applications", app, "workflows", flow, "try", { draft: "unsaved" })}>Try before saving</a>`}
            <button type="button" disabled=${!changed} onClick=${undo}>Undo all changes</button>
            <span class="quiet" role="status">${changed ? "Not saved." : "Saved."}</span></div>
        </form>
      </${Card}>
      <div class="stack">
        <${Graph} definition=${shown.current} arrange=${query.arrange} selected=${query.node} label="The draft."
          href=${(key) => link("/applications", app, "workflows", flow, "edit", { node: key })} problems=${new Set((record.problems || []).map((each) => each.nodeId))} />
        ${!changed && record.problems?.map((each) => html`<${Problem} error=${{ message: html`<a href=${link("/applications", app, "workflows", flow, "edit", { node: each.nodeId })}>${each.nodeLabel || each.nodeId || each.nodeType}</a> cannot run: ${each.message}` }} />`)}
        <p class="quiet">A click on a part shows it in the text.</p>
      </div>
    </div>`;
}

function parse(text) {
  try {
    const value = JSON.parse(text);
    if (value === null || typeof value !== "object" || Array.isArray(value)) return { error: "give an object with triggers, nodes and globals" };
    for (const name of ["triggers", "nodes", "globals"]) {
      if (value[name] !== undefined && !Array.isArray(value[name])) return { error: `${name} must be an array` };
    }
    return { value };
  } catch (error) {
    return { error: error.message };
  }
}

// Select a range of the text, and scroll to it.
function select(field, [start, end]) {
  field.focus();
  field.setSelectionRange(start, end);
  const line = field.value.slice(0, start).split("\n").length;
  field.scrollTop = Math.max(0, (line - 3) * (parseFloat(getComputedStyle(field).lineHeight) || LINE_PX));
}
