// The part of a draft that is selected: its name, its settings, and where it leads. What is typed is in the draft at once.

import { path } from "../../lib/api.js";
import { html, useId, useMemo, useRef, useState } from "../../lib/ui.js";
import { Badge, Card, Problem } from "../../parts/basics.js";
import { RecordChoice } from "../../parts/choose.js";
import { coded, useDocument } from "../../parts/schema.js";
import { connected, disconnected, idProblem, lineProblem, renamed, reordered, withField } from "./change.js";
import { ListField } from "./list-field.js";
import { LiveField } from "./live-field.js";
import { changeOf, fieldsOfPart, isList, valueAt } from "./settings.js";
import { outputsOf, typeText } from "./shape.js";

const SHOWN_MAX = 6;

// app: the application. parts: all of the draft. palette: that of the server. problems: sentences about this part. select(key); forget():
// choose no follower for a line that leads nowhere yet; children: buttons.
export function PartForm({ app, draft, part, parts, palette, problems, select, forget, children }) {
  const document = useDocument();
  const form = part.kind === "node" ? palette?.nodeTypes.find((each) => each.type === part.type) : undefined;
  const names = useRef(new Set()).current; // a field does not vanish while it is emptied
  for (const name of Object.keys(part.config)) names.add(name);
  const fields = fieldsOfPart(part, palette, document, [...names]);
  // What is not needed and not set when the part is opened is folded, if there is much.
  const isReady = part.kind === "trigger" ? Boolean(document) : Boolean(palette);
  const folded = useMemo(() => new Set(fields.length > SHOWN_MAX + 2 ? fields.filter((each) => !each.needed && !each.isSet).slice(-Math.max(0, fields.length - SHOWN_MAX)).map((each) => each.name) : []), [isReady]);
  const change = (path, value, { at, name = path.join(".") } = {}) => draft.change(withField(draft.value, part.key, path, value, at), { merge: `${part.key} ${name}` });
  const field = (each) => {
    const set = (given, name = each.name) => {
      const { path, value } = changeOf(part, each, given);
      change(path, value, { at: each.member, name });
    };
    const order = (places, blank) => {
      forget(); // its output may be another one now
      draft.change(reordered(draft.value, part.key, each.name, places, blank));
    };
    if (each.list) {
      const value = valueAt(part, each), source = path("applications", app, ...each.list.split("/"));
      return html`<${RecordChoice} key=${each.name} field=${{ ...each, source, single: true, hint: value ? undefined : "It has to be chosen, or the trigger never fires." }} chosen=${value ? [value] : []} set=${(ids) => set(ids[0])} />`;
    }
    return html`<${isList(each) ? ListField : LiveField} key=${each.name} field=${each} value=${valueAt(part, each)} set=${set} order=${order} />`;
  };
  const shown = fields.filter((each) => !folded.has(each.name)), more = fields.filter((each) => folded.has(each.name));
  const close = html`<button type="button" class="small" onClick=${() => select("")}>Close</button>`;
  return html`<${Card} title=${part.label} actions=${close} class="card flow-part"><div class="stack">
    ${problems.map((each) => html`<${Problem} error=${{ message: each }} />`)}
    <p>${typeText(part.type)} <span class="quiet break">${part.type}</span>${form && html`<br />${form.summary}`}</p>
    ${form?.description && html`<details><summary>What its settings mean</summary>${form.description.split("\n\n").map((each) => html`<p class="quiet">${coded(each)}</p>`)}</details>`}
    ${part.kind === "node" && !form && palette && html`<p class="quiet">Nodes of this type do not run on this server. Its configuration is kept.</p>`}
    <form class="form" onSubmit=${(event) => event.preventDefault()}>
      <${LiveField} field=${{ name: "label", label: "Name of the part", type: "text", placeholder: part.label }} value=${part.source.meta?.label} set=${(value) => change(["meta", "label"], value)} />
      ${part.kind === "node" && html`<${IdField} key=${part.key} draft=${draft} part=${part} select=${select} />`}
      ${shown.map(field)}
      ${more.length > 0 && html`<details><summary>Further settings</summary><div class="form">${more.map(field)}</div></details>`}
      <${LiveField} field=${{ name: "description", label: "Note", type: "longtext", rows: 2 }} value=${part.source.meta?.description} set=${(value) => change(["meta", "description"], value)} />
      ${outputsOf(part).map((output) => html`<${LeadsTo} key=${output.output} ...${{ draft, part, parts, output }} />`)}
    </form>
    <${ComesFrom} part=${part} parts=${parts} select=${select} />
    ${children}
  </div></${Card}>`;
}

// Lines name a node by its id, so another id is taken when it is complete: on Enter, or when the field is left.
function IdField({ draft, part, select }) {
  const [text, setText] = useState(part.source.id || "");
  const isNew = (given) => given !== (part.source.id || "");
  const problem = isNew(text) ? idProblem(draft.value, part.key, text) : "";
  const id = useId();
  const take = ({ target: { value } }) => {
    if (!isNew(value) || idProblem(draft.value, part.key, value)) return;
    draft.change(renamed(draft.value, part.key, value));
    select(value);
  };
  return html`<div class="field"><label for=${id}>Id</label>
    <input id=${id} name="id" class="mono" autocomplete="off" value=${text} aria-invalid=${problem ? "true" : undefined} onInput=${(event) => setText(event.target.value)} onBlur=${take}
      onKeyDown=${(event) => event.key === "Enter" && take(event)} />
    ${problem && html`<span class="hint" role="status">${problem}</span>`}</div>`;
}

// The lines of an output: to add and to remove them without a pointer.
function LeadsTo({ draft, part, parts, output: { output, name } }) {
  const id = useId();
  const label = name ? `Leads to, if ${name}` : "Leads to";
  const ids = part.to[output] || [];
  const possible = parts.filter((each) => !lineProblem(parts, part.key, output, each.key));
  const add = (event) => {
    const to = event.target.value;
    event.target.value = "";
    if (to) draft.change(connected(draft.value, part.key, output, to).definition);
  };
  const nameOf = (key) => parts.find((each) => each.key === key)?.label || `${key}, which is not there`;
  return html`<div class="field"><label for=${id}>${label}</label>
    ${ids.map((key) => html`<div class="row" key=${key}><${Badge}>${nameOf(key)}</${Badge}>
      <button type="button" class="small" aria-label=${`Remove the line to ${nameOf(key)}${name ? ` (${name})` : ""}`} onClick=${() => draft.change(disconnected(draft.value, part.key, output, key))}>Remove</button></div>`)}
    <select id=${id} value="" onChange=${add}><option value="">Choose a part</option>
      ${possible.map((each) => html`<option key=${each.key} value=${each.key}>${optionText(each, possible)}</option>`)}</select></div>`;
}

// The name of a part, with its id where several have it.
const optionText = (part, parts) => (parts.some((each) => each !== part && each.label === part.label) ? `${part.label} (${part.key})` : part.label);

function ComesFrom({ part, parts, select }) {
  const from = parts.filter((each) => each.to.some((ids) => ids.includes(part.key)));
  if (!from.length) return null;
  return html`<div class="row"><span class="quiet">Comes from</span>${from.map((each) => html`<button type="button" class="small" onClick=${() => select(each.key)}>${each.label}</button>`)}</div>`;
}
