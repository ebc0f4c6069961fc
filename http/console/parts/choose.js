// Records by their ids: a field of forms in which they are searched for on the server, so there may be many of them, and
// what shows them.

import { get, path } from "../lib/api.js";
import { count, wordsOf } from "../lib/format.js";
import { useData } from "../lib/hooks.js";
import { html, useEffect, useRef, useState } from "../lib/ui.js";
import { Problem } from "./basics.js";

const FOUND_MAX = 8;
const NAMED_MAX = 20;
const TYPING_MS = 250;

// The first records of a list with these ids, by their ids; those that cannot be read are left out.
const useRecords = (source, ids, query) => useData(async (signal) => {
  const rows = await Promise.all(ids.slice(0, NAMED_MAX).map((id) => get(`${source}/${encodeURIComponent(id)}`, query, { signal }).catch(() => null)));
  return new Map(rows.filter(Boolean).map((row) => [row.id, row]));
}, [source, ids.join(), query?.version]);

// The names of devices by their ids, asked for together; those that are not there have none.
export function useDeviceNames(app, ids) {
  const wanted = [...new Set(ids.filter(Boolean))].sort();
  const found = useData((signal) => (wanted.length
    ? get(path("applications", app, "devices"), { query: { id: { $in: wanted } }, perPage: wanted.length, excludeConnectionInfo: true }, { signal }) : Promise.resolve({ items: [] })), [app, wanted.join()]);
  return new Map((found.value?.items || []).map((row) => [row.id, row.name]));
}

// field: {label, hint, source: the list of the records, by: the field by which they are found, text(row): what is shown, by
// default the same; query: what else narrows the list; single: whether one at most is chosen}; chosen: ids; set(ids).
export function RecordChoice({ field, chosen, set }) {
  const { source, by = "name", text: textOf = (row) => row[by], query, single } = field;
  const [search, setSearch] = useState("");
  const [added, setAdded] = useState({});
  const [first] = useState(chosen);
  const timer = useRef(0);
  useEffect(() => () => clearTimeout(timer.current), []);
  const before = useRecords(source, first);
  const found = useData((signal) => (search
    ? get(source, { ...query, filterField: by, filter: `*${search}*`, sortField: by, perPage: FOUND_MAX }, { signal }) : Promise.resolve(null)), [search]);
  const nameOf = (id) => {
    const row = added[id] || before.value?.get(id);
    return row ? textOf(row) : id;
  };
  const typed = (event) => {
    const given = event.target.value.trim();
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setSearch(given), TYPING_MS);
  };
  const add = (row) => {
    setAdded({ ...added, [row.id]: row });
    set(single ? [row.id] : [...chosen, row.id]);
  };
  const rows = found.value?.items.filter((row) => !chosen.includes(row.id)) || [];
  const act = single ? "choose" : "add", title = single ? "Choose" : "Add";
  return html`<fieldset class="field choices"><legend>${field.label}</legend>
    ${chosen.length > 0 && html`<div class="row">${chosen.map((id) => html`<span key=${id} class="tag">${nameOf(id)}${" "}
      <button type="button" class="small" aria-label=${`Remove ${nameOf(id)}`} onClick=${() => set(chosen.filter((each) => each !== id))}>Remove</button></span>`)}</div>`}
    <input type="search" aria-label=${`Search ${field.label} to ${act}`} placeholder=${`Search by ${wordsOf(by)} to ${act}`} onInput=${typed}
      onKeyDown=${(event) => event.key === "Enter" && event.preventDefault()} />
    <${Problem} error=${found.error} />
    ${search && found.value && html`<div class="choice-list">${rows.map((row) => html`<button key=${row.id} type="button" class="plain" onClick=${() => add(row)}>${title} ${textOf(row)}</button>`)}
      ${rows.length === 0 && html`<span class="quiet" role="status">Nothing else matches.</span>`}
      ${found.value.totalCount > FOUND_MAX && html`<span class="quiet">${found.value.totalCount - FOUND_MAX} more match. Type more of the ${wordsOf(by)}.</span>`}</div>`}
    ${field.hint && html`<span class="hint">${field.hint}</span>`}
  </fieldset>`;
}

// Links to the first records with these ids, and how many more there are. text(row): what is shown of one; href(id).
export function RecordLinks({ source, ids, text = (row) => row.name, href, query }) {
  const { value } = useRecords(source, ids, query);
  const shown = value ? ids.slice(0, NAMED_MAX) : [];
  const rest = ids.length - shown.length;
  return html`<span class="row">${shown.map((id) => html`<a key=${id} href=${href(id)}>${value.has(id) ? text(value.get(id)) : id}</a>`)}
    ${rest > 0 && (shown.length ? `and ${count(rest)} more` : count(rest))}${ids.length === 0 && "none"}</span>`;
}
