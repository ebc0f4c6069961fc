// What a device has stored by time, newest first: states, commands, changes of the connection. How much is shown, and
// up to when, is in the address.

import { get } from "../../lib/api.js";
import { plural } from "../../lib/format.js";
import { useData } from "../../lib/hooks.js";
import { route, setQuery } from "../../lib/router.js";
import { html, useId } from "../../lib/ui.js";
import { Card, Loaded } from "../../parts/basics.js";
import { Table } from "../../parts/table.js";
import { TimeField } from "../../parts/time.js";

const SIZES = [50, 200, 1000];

// The newest entries of a log: data of useData. `every`: as in useData.
export function useLog(source, every) {
  const { limit, until } = route.value.query;
  const size = SIZES.find((each) => each === Number(limit)) || SIZES[0];
  const asked = { limit: size, end: until };
  const data = useData((signal) => get(source, asked, { signal, exact: true }), [source, size, until], { every });
  return { ...data, size };
}

// The entries of a log. columns: as Table, or a function of the entries. byTime: its order is that of the times that it shows, so older ones can be reached by time.
export function Log({ title, noun, many = noun + "s", log, columns, actions, empty, byTime = true }) {
  const { until } = route.value.query;
  const id = useId();
  const choose = (ms) => setQuery({ until: ms, limit: "" }, { push: true });
  return html`<${Card} flush title=${title} actions=${html`
      <label for=${id}>Up to</label><${TimeField} id=${id} step="1" value=${until ? Number(until) : ""} set=${choose} />
      ${until && html`<button onClick=${() => setQuery({ until: "", limit: "" }, { push: true })}>Newest</button>`}${actions}`}>
    <div class="log"><${Loaded} data=${log}>${(entries) => (entries.length ? html`
      <${Table} label=${title} columns=${typeof columns === "function" ? columns(entries) : columns} rows=${entries.map((each, at) => ({ ...each, at }))} rowKey=${(row) => `${row.time} ${row.id ?? row.at}`} />
      <div class="table-foot"><span role="status">${plural(entries.length, noun, many)}${entries.length === log.size ? " are shown, there may be more" : ""}</span>
        ${entries.length === log.size && html`<${More} size=${log.size} oldest=${byTime && entries.at(-1).time} />`}</div>`
      : until ? html`<p class="empty">There are no ${many} up to this time.</p>` : empty)}</${Loaded}></div>
  </${Card}>`;
}

function More({ size, oldest }) {
  const next = SIZES.find((each) => each > size);
  return html`<span class="row">
    ${next && html`<button class="small" onClick=${() => setQuery({ limit: next })}>Show ${next}</button>`}
    ${oldest && html`<button class="small" onClick=${() => setQuery({ until: new Date(oldest).getTime() - 1 }, { push: true })}>Older</button>`}</span>`;
}
