// The events of an application: what needs attention, and who responded.

import { mayChange } from "../lib/access.js";
import { get, path } from "../lib/api.js";
import { count, plural } from "../lib/format.js";
import { useData } from "../lib/hooks.js";
import { link, route, setQuery } from "../lib/router.js";
import { html, useEffect, useRef, useState } from "../lib/ui.js";
import { Empty, Fresh, Live, Page, Problem, Tile, Time } from "../parts/basics.js";
import { hasWildcard } from "../parts/search.js";
import { RecordTable } from "../parts/table.js";
import { DeviceLink, LevelBadge, levelTone, StateBadge } from "./events/badges.js";
import { useChanges } from "./events/changes.js";
import { LEVELS, mayMatch, queryOf, wholeQuery } from "./events/choice.js";
import { QueryField, Select } from "./events/filters.js";
import { DeviceField } from "./events/device.js";
import { createEvent, deleteMany, exportEvents, respond, respondToMany } from "./events/respond.js";

const COUNTED_MS = 10_000;
const LEAD = "An event is an incident: somebody acknowledges it, and somebody resolves it. Workflows, programs and people create events.";

export function Events({ app }) {
  const { query } = route.value;
  const [refresh, setRefresh] = useState(0);
  const [selected, setSelected] = useState(new Set());
  const [list, setList] = useState(null);
  const reload = () => setRefresh((before) => before + 1);
  const choice = queryOf(query);
  const searched = hasWildcard(query.filter);
  const listed = choice && searched ? wholeQuery(query) : choice;
  const changes = useChanges(app, (event) => mayMatch(query, event));
  const live = changes.stream.state === "live";
  const begun = useRef(false);
  // Something may have happened between the load of the list and the start of the stream.
  useEffect(() => {
    if (live && !begun.current) reload();
    begun.current ||= live;
  }, [live]);
  useEffect(() => setSelected(new Set()), [JSON.stringify({ ...query, sort: "" })]);
  const loaded = (value, since) => { setList(value); changes.loaded(value, since); };
  const create = async () => (await createEvent(app, query.device)) && reload();
  const button = html`<button class="primary" data-create onClick=${create}>Create an event</button>`;
  const actions = html`<${Live} stream=${changes.stream} />
    <button disabled=${!choice} onClick=${() => exportEvents(app, wholeQuery(query))}>Export</button>${button}`;
  const empty = html`<${Empty} title="There are no events yet"
    call=${{ method: "POST", path: path("applications", app, "events"), body: { subject: "The pump is too hot", level: "warning" } }}>
    <div>${button}</div></${Empty}>`;
  return html`<${Page} title="Events" lead=${LEAD} actions=${actions}>
    <${Counts} app=${app} query=${query} version=${changes.version} />
    <${QueryField} value=${query.q} set=${(q) => setQuery({ q, page: "" })} />
    ${choice ? html`<${RecordTable} noun="event" source=${path("applications", app, "events")} search="subject" sortField="creationDate" sortDirection="desc"
        searched=${searched} params=${Object.keys(listed).length ? { query: listed } : {}} refresh=${refresh} empty=${empty} selected=${selected} select=${mayChange() && setSelected}
        onLoaded=${loaded} columns=${columns(app, changes, reload)} href=${(row) => link("/applications", app, "events", row.id)}
        filters=${html`<${Filters} app=${app} query=${query} />`} />
        <div class="below-list"><${Changed} changes=${changes} unsure=${Boolean(query.q)} show=${() => { setQuery({ page: "" }); reload(); }} />
          <${Chosen} app=${app} list=${list} selected=${selected} query=${query} done=${() => { setSelected(new Set()); reload(); }} /></div>`
      : html`<section class="card"><${Problem} error=${{ message: "The query in the address is not JSON." }} retry=${() => setQuery({ q: "" })} /></section>`}
  </${Page}>`;
}

function columns(app, changes, reload) {
  const column = (render) => (row) => render(changes.now(row));
  return [
    { label: "Subject", sort: "subject", render: column((row) => html`<span class=${row.gone ? "quiet" : ""}>${row.subject}${row.gone && " (deleted)"}</span>`) },
    { label: "Level", sort: "level", render: column((row) => html`<${LevelBadge} level=${row.level} />`) },
    { label: "State", sort: "state", render: column((row) => html`<${StateBadge} state=${row.state} />`) },
    { label: "Device", sort: "deviceId", render: column((row) => html`<${DeviceLink} app=${app} event=${row} />`) },
    { label: "Created", sort: "creationDate", render: (row) => html`<${Time} at=${row.creationDate} />` },
    { label: "Changed", sort: "lastUpdated", render: column((row) => html`<${Time} at=${row.lastUpdated} age />`) },
    { label: "Respond", render: column((row) => html`<${Respond} ...${{ app, row, reload }} />`) },
  ];
}

function Respond({ app, row, reload }) {
  if (row.gone) return null;
  const button = (state, text) => html`<button data-write class="small" aria-label=${`${text}: ${row.subject}`} onClick=${async () => (await respond(app, row, state)) && reload()}>${text}</button>`;
  return html`<span class="row responses">${row.state === "new" && button("acknowledged", "Acknowledge")}${row.state !== "resolved" && button("resolved", "Resolve")}</span>`;
}

// The open events by level. Each figure leads to its events.
function Counts({ app, query, version }) {
  const data = useData((signal) => get(path("applications", app, "overview"), {}, { signal }), [app], { every: COUNTED_MS });
  const timer = useRef(0);
  useEffect(() => {
    timer.current ||= version && setTimeout(() => { timer.current = 0; data.reload(); }, 1000);
  }, [version]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const open = data.value?.openEvents;
  if (!open && data.error) return html`<${Problem} error=${data.error} retry=${data.reload} />`;
  const figure = (number) => (open ? count(number) : "…");
  return html`${data.error && html`<p><${Fresh} data=${data} /></p>`}<div class="tiles level-tiles">${LEVELS.map((level) => {
    const chosen = query.level === level && query.state === "open";
    const unanswered = open?.new[level], acknowledged = open?.acknowledged[level];
    const all = unanswered + acknowledged;
    return html`<${Tile} label=${`Open, ${level}`} value=${figure(all)} tone=${all ? levelTone(level) : ""}
      detail=${`${figure(unanswered)} new, ${figure(acknowledged)} acknowledged`}
      to=${link("/applications", app, "events", chosen ? {} : { ...query, page: "", level, state: "open" })} />`;
  })}</div>`;
}

function Filters({ app, query }) {
  const set = (name) => (value) => setQuery({ [name]: value, page: "" });
  return html`
    <${Select} label="State" value=${query.state} set=${set("state")} options=${[["", "Any state"], ["open", "open"], ["new", "new"], ["acknowledged", "acknowledged"], ["resolved", "resolved"]]} />
    <${Select} label="Level" value=${query.level} set=${set("level")} options=${[["", "Any level"], ...LEVELS.map((each) => [each, each])]} />
    <${DeviceField} app=${app} value=${query.device || ""} choose=${set("device")} label="Device by name" />`;
}

// What has changed since the list was loaded (`unsure`: the server alone knows whether it matches), with a button that loads it again.
function Changed({ changes, unsure, show }) {
  if (!changes.fresh && !changes.missed) return null;
  const text = changes.missed ? "Some changes are not in this list." : `${changes.many ? "More than " : ""}${plural(changes.fresh, "new event")}${unsure ? " that may match" : ""}.`;
  return html`<div class="bar fresh" role="status">${text} <button class="small" onClick=${show}>Show</button></div>`;
}

// What can be done with the selected events, or with all that match.
function Chosen({ app, list, selected, query, done }) {
  const [all, setAll] = useState(false);
  const total = all ? list?.totalCount || 0 : selected.size;
  useEffect(() => setAll(false), [selected]);
  if (!selected.size) return null;
  const chosen = () => ({ query: all ? wholeQuery(query) : { id: { $in: [...selected] } }, total });
  const act = (what) => async () => (await what()) && done();
  return html`<div class="bar" role="group" aria-label="Selected events">
    <b>${all ? `All ${plural(total, "event")} that match` : `${plural(total, "event")} selected`}</b>
    <button data-write class="small" onClick=${act(() => respondToMany(app, { ...chosen(), state: "acknowledged" }))}>Acknowledge</button>
    <button data-write class="small" onClick=${act(() => respondToMany(app, { ...chosen(), state: "resolved" }))}>Resolve</button>
    <button data-write class="small" onClick=${act(() => respondToMany(app, chosen()))}>Comment</button>
    <button class="small danger" onClick=${act(() => deleteMany(app, chosen()))}>Delete</button>
    ${list && list.totalCount > selected.size && html`<button class="small plain" onClick=${() => setAll(!all)}>
      ${all ? "Only those selected" : `Select all ${plural(list.totalCount, "event")} that match`}</button>`}
  </div>`;
}
