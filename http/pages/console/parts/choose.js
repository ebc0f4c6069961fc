// A field of forms for the ids of records: they are searched for on the server, so there may be many of them.

import { get } from "../lib/api.js";
import { useData } from "../lib/hooks.js";
import { html, useEffect, useRef, useState } from "../lib/ui.js";
import { Problem } from "./basics.js";

const FOUND_MAX = 8;
const NAMED_MAX = 20;
const TYPING_MS = 250;

// field: {label, hint, source: the list of the records, by: the field by which they are found and shown}; chosen: ids;
// set(ids).
export function RecordChoice({ field, chosen, set }) {
  const [text, setText] = useState("");
  const [names, setNames] = useState({});
  const timer = useRef(0);
  const { source, by = "name" } = field;
  useEffect(() => () => clearTimeout(timer.current), []);
  // The names of what is chosen already.
  const before = useData(async (signal) => {
    const rows = await Promise.all(chosen.slice(0, NAMED_MAX).map((id) => get(`${source}/${encodeURIComponent(id)}`, {}, { signal }).catch(() => null)));
    return Object.fromEntries(rows.filter(Boolean).map((row) => [row.id, row[by]]));
  }, []);
  const found = useData((signal) => (text
    ? get(source, { filterField: by, filter: `*${text}*`, sortField: by, perPage: FOUND_MAX }, { signal }) : Promise.resolve(null)), [text]);
  const nameOf = (id) => names[id] || before.value?.[id] || id;
  const typed = (event) => {
    const given = event.target.value.trim();
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setText(given), TYPING_MS);
  };
  const add = (row) => {
    setNames({ ...names, [row.id]: row[by] });
    set([...chosen, row.id]);
  };
  const rows = found.value?.items.filter((row) => !chosen.includes(row.id)) || [];
  return html`<fieldset class="field choices"><legend>${field.label}</legend>
    ${chosen.length > 0 && html`<div class="row">${chosen.map((id) => html`<span key=${id} class="tag">${nameOf(id)}${" "}
      <button type="button" class="small" aria-label=${`Remove ${nameOf(id)}`} onClick=${() => set(chosen.filter((each) => each !== id))}>Remove</button></span>`)}</div>`}
    <input type="search" aria-label=${`Search ${field.label} to add`} placeholder=${`Search by ${by} to add`} onInput=${typed}
      onKeyDown=${(event) => event.key === "Enter" && event.preventDefault()} />
    <${Problem} error=${found.error} />
    ${text && found.value && html`<div class="choice-list">${rows.map((row) => html`<button key=${row.id} type="button" class="plain" onClick=${() => add(row)}>Add ${row[by]}</button>`)}
      ${rows.length === 0 && html`<span class="quiet" role="status">Nothing else matches.</span>`}
      ${found.value.totalCount > FOUND_MAX && html`<span class="quiet">${found.value.totalCount - FOUND_MAX} more match. Type more of the ${by}.</span>`}</div>`}
    ${field.hint && html`<span class="hint">${field.hint}</span>`}
  </fieldset>`;
}
