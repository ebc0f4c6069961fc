// The fields above the list of events.

import { html, useEffect, useId, useState } from "../../lib/ui.js";
import { Problem } from "../../parts/basics.js";

const EXAMPLES = [
  ["Created in a day", { creationDate: { $gte: "2026-11-01", $lt: "2026-11-02" } }],
  ["With a tag", { eventTags: { site: "north" } }],
  ["By workflows", { sourceType: "flow" }],
  ["Subject begins with", { subject: { $startsWith: "Pump", $ci: true } }],
];

export function Select({ label, value = "", set, options }) {
  return html`<select aria-label=${label} value=${value} onChange=${(event) => set(event.target.value)}>
    ${options.map(([each, text]) => html`<option value=${each} selected=${each === value}>${text}</option>`)}</select>`;
}

// An advanced query as JSON text. `set` is called with text that is JSON, or with "".
export function QueryField({ value = "", set }) {
  const [text, setText] = useState(value);
  const [wrong, setWrong] = useState(null);
  const id = useId();
  useEffect(() => setText(value), [value]);
  const apply = (event) => {
    event.preventDefault();
    try {
      if (text.trim()) JSON.parse(text);
      setWrong(null);
      set(text.trim());
    } catch (error) {
      setWrong({ message: `The query is not JSON: ${error.message}.` });
    }
  };
  return html`<details class="card" open=${Boolean(value)}>
    <summary>Advanced query</summary>
    <form class="stack" onSubmit=${apply}>
      <div class="field"><label for=${id}>Query, beside the other filters</label>
        <textarea id=${id} rows="3" spellcheck=${false} value=${text} aria-invalid=${wrong ? "true" : undefined} onInput=${(event) => setText(event.target.value)}></textarea></div>
      <${Problem} error=${wrong} />
      <div class="row"><button class="primary">Apply</button>
        ${value && html`<button type="button" onClick=${() => set("")}>Remove the query</button>`}
        <span class="quiet">Examples:</span>
        ${EXAMPLES.map(([name, example]) => html`<button type="button" class="small" onClick=${() => setText(JSON.stringify(example))}>${name}</button>`)}</div>
      <p class="quiet">Fields: <code>id</code>, <code>subject</code>, <code>level</code>, <code>state</code>, <code>deviceId</code>, <code>sourceId</code>, <code>sourceType</code>,
        <code>creationDate</code>, <code>lastUpdated</code>, <code>eventTags</code>. Operators: <code>$eq $ne $gt $gte $lt $lte $in $nin $startsWith $endsWith $contains $ci $and $or $nor</code>.</p>
    </form>
  </details>`;
}
