// The draft of a workflow is changed in its picture, or as JSON. The text of the draft is what both change. The server
// checks it when it is saved.

import { patch } from "../../lib/api.js";
import { link, route, setQuery } from "../../lib/router.js";
import { html, useEffect, useRef, useState } from "../../lib/ui.js";
import { Notice, Problem } from "../../parts/basics.js";
import { useOpen } from "../../parts/dialog.js";
import { openForm } from "../../parts/form.js";
import { note } from "../../parts/notes.js";
import { useDraft } from "./draft.js";
import { Draw } from "./draw.js";
import { JsonText } from "./json-text.js";
import { problemsOf } from "./part.js";
import { pathOf } from "./place.js";
import { partsOf } from "./shape.js";

export function Edit({ app, flow, source, record, reload }) {
  const { query } = route.value;
  const draft = useDraft(flow, record);
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const open = useOpen();
  const { changed, stale } = draft;
  const asJson = query.as === "json";
  const place = (more) => link("/applications", app, "workflows", flow, "edit", { ...query, ...more });

  const save = async () => {
    setBusy(true);
    setError(null);
    try {
      // Parts that were removed from the text are emptied.
      const body = { triggers: [], nodes: [], globals: [], ...draft.value };
      draft.isSaved(await patch(source, body, { headers: { "if-match": draft.etag }, exact: true }), draft.text);
      note("The draft is saved.");
      await reload();
    } catch (failure) {
      if (failure.status === 412) await reload(); // so that it is seen what somebody else has saved
      if (!open()) return note(`The draft is not saved: ${failure.message}`, "bad");
      setError(failure);
      const part = partAt(draft.value, pathOf(failure.message));
      if (part && !asJson) setQuery({ node: part.key });
    }
    setBusy(false);
  };
  const canSave = changed && !draft.error && !busy;
  useKeys({ save: () => canSave && save(), undo: () => busy || draft.undo(), redo: () => busy || draft.redo() });
  const undoAll = () => {
    draft.undoAll();
    setError(null);
  };
  const describe = async () => {
    const done = await openForm("Name and description", {
      fields: [{ name: "name", label: "Name", required: true }, { name: "description", label: "Description", type: "longtext", blank: "" }],
      initial: record, changesOnly: true, submit: (values) => patch(source, values),
    });
    if (done) reload();
  };
  const told = changed ? [] : record.problems || [];
  const broken = new Set(partsOf(draft.shown).filter((part) => problemsOf(part, told).length).map((part) => part.key));
  const refused = error && draft.value && partAt(draft.value, pathOf(error.message))?.key;
  const given = { app, flow, draft, busy, error };
  const runsNow = record.enabled && !record.defaultVersionId;
  return html`
    <${Notice} tone=${runsNow ? "warn" : ""}>${runsNow
      ? html`This draft (<code>develop</code>) is what runs: what you save takes effect at once. Make a <a href=${link("/applications", app, "workflows", flow, "versions")}>version</a> the default to keep the two apart.`
      : html`This draft (<code>develop</code>) does not run by default. <a href=${link("/applications", app, "workflows", flow, "try", { version: "develop" })}>Try it</a> without effects, then make a <a href=${link("/applications", app, "workflows", flow, "versions")}>version</a> of it.`}</${Notice}>
    ${stale && html`<${Notice} tone="warn">The draft was saved by somebody else while you changed it. Copy your text, undo your changes, and make them again.</${Notice}>`}
    <div class="card row">
      <span class="row flow-choice" role="group" aria-label="Change the draft as">
        <a class="button small" aria-current=${asJson ? undefined : "true"} href=${place({ as: "" })}>Picture</a>
        <a class="button small" aria-current=${asJson ? "true" : undefined} href=${place({ as: "json" })}>JSON</a>
      </span>
      <button data-write class="primary" disabled=${!canSave} onClick=${save}>Save</button>
      ${changed && !draft.error && html`<a class="button" href=${link("/applications", app, "workflows", flow, "try", { draft: "unsaved" })}>Try before saving</a>`}
      <button disabled=${busy || !draft.canUndo} onClick=${draft.undo} title="Ctrl+Z">Undo</button>
      <button disabled=${busy || !draft.canRedo} onClick=${draft.redo} title="Ctrl+Shift+Z">Redo</button>
      <button disabled=${busy || !changed} onClick=${undoAll}>Undo all changes</button>
      <button data-write onClick=${describe}>Name and description</button>
      <span class="quiet" role="status">${changed ? "Not saved." : "Saved."}</span>
    </div>
    <${Problem} error=${error} />
    ${draft.error && html`<p class="quiet" role="status">${draft.error}</p>`}
    ${told.map((each) => html`<${Problem} error=${{ message: html`<a href=${place({ node: keyOf(draft.shown, each) })}>${each.nodeLabel || each.nodeId || each.nodeType}</a> cannot run: ${each.message}` }} />`)}
    ${asJson ? html`<${JsonText} ...${given} problems=${broken} />`
      : draft.error ? html`<${Notice}>The picture cannot be changed until the JSON is right. <a href=${place({ as: "json" })}>Open the JSON</a>, or undo.</${Notice}>`
        : html`<${Draw} ...${given} problems=${new Set([...broken, ...(refused ? [refused] : [])])} refused=${refused} flowClass=${record.flowClass} told=${told} />`}`;
}

// The part of a definition to which a path such as ["nodes", 2, "outputIds"] leads.
function partAt(definition, path) {
  const named = path && definition?.[path[0]]?.[path[1]];
  return named && partsOf(definition).find((part) => part.members.includes(named));
}

// The key of the part that a problem of the server is about.
const keyOf = (definition, problem) => partsOf(definition).find((part) => problemsOf(part, [problem]).length)?.key;

// The keys of the whole tab. A text field has its own Ctrl+Z.
function useKeys(acts) {
  const latest = useRef(acts);
  latest.current = acts;
  useEffect(() => {
    const pressed = (event) => {
      if (!(event.ctrlKey || event.metaKey) || event.altKey || document.querySelector("dialog[open]")) return;
      const key = event.key.toLowerCase();
      const act = key === "s" ? "save" : event.target.closest?.("input, textarea, select") ? "" : key === "z" ? (event.shiftKey ? "redo" : "undo") : key === "y" ? "redo" : "";
      if (!act) return;
      event.preventDefault();
      latest.current[act]();
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, []);
}
