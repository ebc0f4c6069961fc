// The draft of a workflow as JSON, with its picture beside it.

import { link, route } from "../../lib/router.js";
import { html, useEffect, useLayoutEffect, useRef } from "../../lib/ui.js";
import { Card } from "../../parts/basics.js";
import { Graph } from "./graph.js";
import { pathOf, pathOfPart, rangeOf } from "./place.js";

const LINE_PX = 20;

// error: of the last attempt to save. problems: the keys of parts that cannot run.
export function JsonText({ app, flow, draft, busy, error, problems }) {
  const { query } = route.value;
  const field = useRef(null);
  const show = (path) => path && draft.value && select(field.current, rangeOf(draft.text, path));
  useEffect(() => { if (query.node && draft.value) show(pathOfPart(draft.value, query.node)); }, [query.node]);
  const path = error && pathOf(error.message);
  useLayoutEffect(() => { show(path); }, [error]);
  return html`<div class="flow-edit">
      <${Card} title="Triggers, nodes and globals"><div class="stack">
        <textarea ref=${field} aria-label="The draft as JSON" rows="28" spellcheck=${false} value=${draft.text} readOnly=${busy} onInput=${(event) => draft.write(event.target.value, { merge: "text" })}
          aria-invalid=${draft.error ? "true" : undefined}></textarea>
        ${path && draft.value && html`<div><button type="button" class="small" onClick=${() => show(path)}>Show the place</button></div>`}</div>
      </${Card}>
      <div class="stack">
        <${Graph} definition=${draft.shown} arrange=${query.arrange} selected=${query.node} label="The draft."
          href=${(key) => link("/applications", app, "workflows", flow, "edit", { as: "json", node: key })} problems=${problems} />
        <p class="quiet">A click on a part shows it in the text.</p>
      </div>
    </div>`;
}

// Select a range of the text, and scroll to it.
function select(field, [start, end]) {
  field.focus();
  field.setSelectionRange(start, end);
  const line = field.value.slice(0, start).split("\n").length;
  field.scrollTop = Math.max(0, (line - 3) * (parseFloat(getComputedStyle(field).lineHeight) || LINE_PX));
}
