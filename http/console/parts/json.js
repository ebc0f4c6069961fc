// JSON to read, folded, and JSON to edit.

import { exactJson, parseExact } from "../lib/exact.js";
import { html, useRef, useState } from "../lib/ui.js";
import { Problem } from "./basics.js";
import { useOpen } from "./dialog.js";
import { note } from "./notes.js";

const FOLDED_FROM = 2;
const ITEMS_MAX = 200;

// A value as a tree. Objects deeper than two levels are folded.
export const Json = ({ value }) => html`<div class="json"><${Node} value=${value} depth=${0} /></div>`;

function Node({ name, value, depth }) {
  const key = name !== undefined && html`<span class="key">${name}: </span>`;
  if (value === null || typeof value !== "object") {
    const kind = typeof value === "string" ? "string" : "other";
    return html`<div>${key}<span class=${kind}>${exactJson(value)}</span></div>`;
  }
  const entries = Object.entries(value);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  if (!entries.length) return html`<div>${key}${open}${close}</div>`;
  return html`<details open=${depth < FOLDED_FROM}><summary>${key}${open}${entries.length}${close}</summary>
    <div>${entries.slice(0, ITEMS_MAX).map(([each, inner]) => html`<${Node} key=${each} name=${each} value=${inner} depth=${depth + 1} />`)}
    ${entries.length > ITEMS_MAX && html`<p class="quiet">${entries.length - ITEMS_MAX} more are not shown.</p>`}</div></details>`;
}

// Edit a value as JSON text; it should come from an exact answer. `save(value)` gives a promise; its error is shown below,
// in the server's own sentence.
// `changesOnly`: of an object, `save` gets the fields that were changed.
export function JsonEditor({ value, save, button = "Save", label = "JSON", rows = 24, changesOnly = false }) {
  const first = useRef(value); // the record may be read again while somebody edits it
  const [text, setText] = useState(() => exactJson(value, 2));
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const open = useOpen();
  const syntax = syntaxError(text);
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      const given = parseExact(text);
      await save(changesOnly ? changesOf(first.current, given) : given);
    } catch (failure) {
      if (!open()) note(failure.message, "bad");
      setError(failure);
    }
    setBusy(false);
  };
  return html`<form onSubmit=${submit} class="stack">
    <textarea aria-label=${label} rows=${rows} spellcheck=${false} value=${text} onInput=${(event) => setText(event.target.value)} aria-invalid=${syntax ? "true" : undefined}></textarea>
    ${syntax && html`<p class="quiet" role="status">This is not JSON yet: ${syntax}</p>`}
    <${Problem} error=${error} />
    <div class="row"><button class="primary" disabled=${busy || Boolean(syntax)}>${button}</button>
      <button type="button" onClick=${() => setText(exactJson(first.current, 2))}>Undo all changes</button></div>
  </form>`;
}

// The fields of an object that are not as they were `before`, so that a PATCH overwrites nothing that somebody else has
// changed meanwhile. Fields that were removed are null. What is no object is given as it is, for the server to say so.
function changesOf(before, after) {
  if (after === null || typeof after !== "object" || Array.isArray(after)) return after;
  const removed = Object.fromEntries(Object.keys(before).map((name) => [name, null]));
  return Object.fromEntries(Object.entries({ ...removed, ...after }).filter(([name, value]) => exactJson(value) !== exactJson(before[name])));
}

function syntaxError(text) {
  try {
    parseExact(text);
    return "";
  } catch (error) {
    return error.message;
  }
}
