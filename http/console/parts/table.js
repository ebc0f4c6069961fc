// Tables. `Table` shows rows that are there; `RecordTable` pages, sorts and searches a list on the server.

import { get } from "../lib/api.js";
import { exactJson } from "../lib/exact.js";
import { count, plural, wordsOf } from "../lib/format.js";
import { useData } from "../lib/hooks.js";
import { go, route, setQuery } from "../lib/router.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../lib/ui.js";
import { Fresh, Problem, Shape } from "./basics.js";

const PER_PAGE = 50;
const TYPING_MS = 250;

// columns: {label, render(row), sort: the sortField of the server, number: true for figures, wide, link}
// rows: what is shown; `href(row)` makes the column with `link`, else the first one, a link, and Enter or a click on the
// row opens it.
export function Table({ label, columns, rows, href, rowKey = (row) => row.id, sort, selected, select }) {
  const order = (column) => {
    if (!column.sort || !sort) return undefined;
    return sort.field === column.sort ? (sort.direction === "asc" ? "ascending" : "descending") : undefined;
  };
  const head = (column) => {
    if (!column.sort || !sort) return column.label;
    const arrow = { ascending: " \u2191", descending: " \u2193" }[order(column)] || "";
    return html`<button onClick=${() => sort.by(column.sort)}>${column.label}${arrow}</button>`;
  };
  const linked = Math.max(0, columns.findIndex((column) => column.link));
  const all = select && rows.length > 0 && rows.every((row) => selected.has(rowKey(row)));
  return html`<div class="table-box" tabindex="0" role="region" aria-label=${label}><table>
    <thead><tr>
      ${select && html`<th><input type="checkbox" aria-label="Select all on this page" checked=${all} onChange=${() => select(all ? new Set() : new Set(rows.map(rowKey)))} /></th>`}
      ${columns.map((column) => html`<th scope="col" class=${column.number ? "number" : ""} aria-sort=${order(column)}>${head(column)}</th>`)}
    </tr></thead>
    <tbody>${rows.map((row) => html`<tr key=${rowKey(row)} data-href=${href ? href(row) : undefined}>
      ${select && html`<td><input type="checkbox" aria-label="Select this row" checked=${selected.has(rowKey(row))} onChange=${() => select(toggled(selected, rowKey(row)))} /></td>`}
      ${columns.map((column, at) => html`<td class=${column.number ? "number" : ""}>${at === linked && href ? html`<a href=${href(row)}>${column.render(row)}</a>` : column.render(row)}</td>`)}
    </tr>`)}</tbody>
  </table></div>`;
}

function toggled(set, key) {
  const changed = new Set(set);
  if (!changed.delete(key)) changed.add(key);
  return changed;
}

// A list of the API, a page at a time. The page, the order and the search are in the address of the view.
// source: the path of the list, or load({page, perPage, sortField, sortDirection, filterField, filter}, signal) -> list.
// noun, many: what a row is. params: more query parameters. search: the filterField for the search box, none without it. searched: `params` have
// the search already, and it is not sent as a filter. filters: markup that stands beside it. empty: markup for when there is nothing at all. refresh: change it to load again; every: as useData.
// onLoaded(list, since): tells of each list, and when its load began, as performance.now() has it.
export function RecordTable({ noun = "row", many = noun + "s", source, params = {}, columns, href, search = "name", searched = false, filters, empty, rowKey, refresh, every = 0, sortField, sortDirection, selected, select, onLoaded }) {
  const { query } = route.value;
  const page = Number(query.page) || 0;
  const field = query.sort || sortField;
  const direction = query.direction || (query.sort ? "asc" : sortDirection);
  const filter = query.filter || "";
  const asked = {
    ...params, page, perPage: PER_PAGE, sortField: field, sortDirection: direction,
    ...(filter && search && !searched ? { filterField: search, filter: `*${filter}*` } : {}),
  };
  const narrowed = Boolean(filter || Object.values(params).some((value) => value !== undefined && value !== null && value !== ""));
  const load = async (signal) => {
    const since = performance.now();
    return { narrowed, since, list: await (typeof source === "function" ? source(asked, signal) : get(source, asked, { signal })) };
  };
  const again = typeof every === "function" ? (answer) => every(answer.list) : every;
  const data = useData(load, [typeof source === "function" ? refresh : source, exactJson(asked)], { every: again });
  const list = data.value?.list;
  const loaded = useRef(refresh);
  useEffect(() => {
    if (loaded.current !== refresh && typeof source !== "function") data.reload();
    loaded.current = refresh;
  }, [refresh]);
  useEffect(() => { if (list) onLoaded?.(list, data.value.since); }, [list]);
  // The last page may have gone, as by a deletion.
  useEffect(() => { if (page > 0 && list && page * PER_PAGE >= list.totalCount) setQuery({ page: Math.max(0, Math.ceil(list.totalCount / PER_PAGE) - 1) || "" }); }, [list]);
  const sort = {
    // What the address says, since a list that comes late is still in the order before.
    field: field || list?.sortField,
    direction: direction || list?.sortDirection,
    by: (name) => setQuery({ sort: name, direction: sort.field === name && sort.direction === "asc" ? "desc" : "asc", page: "" }),
  };
  // A list that was asked for with a search stays until the list without it comes, and so does the search box.
  if (list && list.totalCount === 0 && !narrowed && !data.value.narrowed && empty) return html`<section class="card flush">${filters && html`<div class="filters">${filters}</div>`}${empty}</section>`;
  const pages = list ? Math.max(1, Math.ceil(list.totalCount / PER_PAGE)) : 1;
  return html`<section class="card flush">
    ${(search || filters) && html`<div class="filters">
      ${search && html`<${SearchBox} value=${filter} set=${(text) => setQuery({ filter: text, page: "" })} label=${`Search ${many}`} placeholder=${`Search by ${wordsOf(search)}`} />`}
      ${filters}
    </div>`}
    <${Problem} error=${data.error} retry=${data.reload} />
    ${!list && !data.error && html`<${Shape} />`}
    ${list && html`<div class=${data.loading && !every ? "busy" : ""}>
      ${list.items.length === 0 ? html`<p class="empty">Nothing matches. Change the search to see more.</p>`
        : html`<${Table} ...${{ label: many, columns, rows: list.items, href, rowKey, sort, selected, select }} />`}
      <div class="table-foot"><span class="row"><span role="status">${plural(list.totalCount, noun, many)}</span>${every > 0 && html`<${Fresh} data=${data} />`}</span>
        ${pages > 1 && html`<span class="row">
          <button class="small" disabled=${page === 0} onClick=${() => setQuery({ page: page - 1 || "" }, { push: true })}>Previous</button>
          <span>Page ${count(page + 1)} of ${count(pages)}</span>
          <button class="small" disabled=${page + 1 >= pages} onClick=${() => setQuery({ page: page + 1 }, { push: true })}>Next</button>
        </span>`}</div>
    </div>`}
  </section>`;
}

// A search box that tells of its text when the typing pauses. `/` puts the focus here.
export function SearchBox({ value, set, label, placeholder = "Search by name" }) {
  const [text, setText] = useState(value);
  const timer = useRef(0);
  const told = useRef(value);
  // What is typed stays, also a blank at its end, when an earlier part of it comes back from the address.
  useLayoutEffect(() => {
    if (value === told.current) return;
    told.current = value;
    clearTimeout(timer.current);
    setText(value);
  }, [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const typed = (event) => {
    const given = event.target.value;
    setText(given);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => set((told.current = given.trim())), TYPING_MS);
  };
  return html`<input type="search" data-search aria-label=${label} placeholder=${placeholder} value=${text} onInput=${typed} />`;
}

// A click anywhere in a row opens it, if it was not on something that does more. Called once at the start.
export function openRowsByClick() {
  document.addEventListener("click", (event) => {
    const row = event.target.closest?.("tr[data-href]");
    if (!row || event.target.closest("a, button, input, select, textarea, label, summary") || getSelection().toString()) return;
    go(row.dataset.href);
  });
}
