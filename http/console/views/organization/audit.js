// The audit log: every call that changed something in the organization, or tried to.

import { get, path } from "../../lib/api.js";
import { useData } from "../../lib/hooks.js";
import { link, route, setQuery } from "../../lib/router.js";
import { html, useId, useMemo } from "../../lib/ui.js";
import { Badge, Card, Empty, Facts, Loaded, Time } from "../../parts/basics.js";
import { Json } from "../../parts/json.js";
import { RecordTable, Table } from "../../parts/table.js";

const HOUR_MS = 3_600_000;
const SPANS = [["", "Any time"], [String(HOUR_MS), "Last hour"], [String(24 * HOUR_MS), "Last day"], [String(7 * 24 * HOUR_MS), "Last 7 days"], [String(30 * 24 * HOUR_MS), "Last 30 days"]];
const FIELDS = [
  ["who", "By (exact name)", "a@example.com"],
  ["operation", "Operation", "device.patch"],
  ["target", "Application or dashboard (id)", "24 hex digits"],
  ["part", "What is in it (id)", "24 hex digits"],
  ["status", "Status", "403"],
];
const ID = /^[0-9a-f]{24}$/i;

export function AuditLog({ org }) {
  const { entry } = route.value.query;
  return entry ? html`<${Entry} key=${entry} org=${org} id=${entry} />` : html`<${Entries} org=${org} />`;
}

// The filter of the address as the API takes it. Throws an Error with what is wrong.
function filterOf({ who, operation, target, part, status }) {
  const filter = {};
  if (who) filter.actor = [{ name: who }];
  if (operation) {
    const [resource, action] = operation.split(".");
    filter.request = [{ ...(resource ? { resource } : {}), ...(action ? { action } : {}) }];
  }
  for (const [name, id] of [["primaryTarget", target], ["secondaryTarget", part]]) {
    if (!id) continue;
    if (!ID.test(id)) throw new Error(`The id is "${id}"; it must be 24 hex digits.`);
    filter[name] = [{ id }];
  }
  if (status) {
    if (!/^[1-5][0-9][0-9]$/.test(status)) throw new Error(`The status is "${status}"; it must be a number such as 403.`);
    filter.responseCode = [Number(status)];
  }
  return Object.keys(filter).length ? filter : undefined;
}

function Entries({ org }) {
  const { query } = route.value;
  const source = path("orgs", org.id, "audit-logs");
  let filter, wrong = null;
  try {
    filter = filterOf(query);
  } catch (error) {
    wrong = error;
  }
  // The time of now moves: it is read when the span changes, so that the pages of the list fit together.
  const start = useMemo(() => (query.span ? new Date(Date.now() - Number(query.span)).toISOString() : undefined), [query.span]);
  const columns = [
    { label: "When", sort: "creationDate", render: (row) => html`<${Time} at=${row.creationDate} />` },
    { label: "By", sort: "actorName", render: (row) => html`${row.actorName} <span class="quiet">${row.actorType === "User" ? "" : row.actorType}</span>` },
    { label: "Operation", render: (row) => html`<code>${row.requestResource}.${row.requestAction}</code>` },
    { label: "Target", render: targetOf },
    { label: "Status", sort: "responseStatus", render: (row) => html`<${Status} status=${row.responseStatus} />` },
    { label: "From", render: (row) => row.ipAddress },
  ];
  const empty = html`<${Empty} title="The log is empty"><p>It notes each call that changes something in this organization or in its applications, and each that tries to.</p></${Empty}>`;
  const filters = html`<select aria-label="Time" value=${query.span || ""} onChange=${(event) => setQuery({ span: event.target.value, page: "" })}>
      ${SPANS.map(([value, text]) => html`<option value=${value} selected=${value === (query.span || "")}>${text}</option>`)}</select>
    <${Fields} query=${query} />`;
  return html`<${RecordTable} noun="entry" many="entries" source=${wrong ? () => Promise.reject(wrong) : source} refresh=${wrong?.message} search="" filters=${filters} columns=${columns} empty=${empty}
    sortField="creationDate" sortDirection="desc" params=${{ auditLogFilter: filter, start }}
    href=${(row) => link("/organizations", org.id, "audit", { ...query, entry: row.id })} />`;
}

function Fields({ query }) {
  const id = useId();
  const apply = (event) => {
    event.preventDefault();
    const given = new FormData(event.target);
    setQuery({ ...Object.fromEntries(FIELDS.map(([name]) => [name, given.get(name).trim()])), page: "" }, { push: true });
  };
  const active = FIELDS.some(([name]) => query[name]);
  return html`<form class="row audit-fields" onSubmit=${apply} key=${JSON.stringify(FIELDS.map(([name]) => query[name]))}>
    ${FIELDS.map(([name, label, example]) => html`<span class="field"><label for=${id + name}>${label}</label><input id=${id + name} name=${name} placeholder=${example} defaultValue=${query[name] || ""} autocomplete="off" /></span>`)}
    <button>Filter</button>
    ${active && html`<button type="button" class="plain" onClick=${() => setQuery(Object.fromEntries(FIELDS.map(([name]) => [name, ""])))}>Remove the filter</button>`}
  </form>`;
}

const Status = ({ status }) => html`<${Badge} tone=${status < 300 ? "good" : status < 500 ? "warn" : "bad"}>${status}</${Badge}>`;

function targetOf(row) {
  const names = [[row.primaryTargetType, row.primaryTargetName, row.primaryTargetId], [row.secondaryTargetType, row.secondaryTargetName, row.secondaryTargetId]];
  const shown = names.filter(([type]) => type).map(([type, name, id]) => html`<div><span class="quiet">${type}</span> ${name || id || ""}</div>`);
  return shown.length ? shown : html`<span class="quiet">the organization</span>`;
}

// One entry, with the values before and after the call.
function Entry({ org, id }) {
  const data = useData((signal) => get(path("orgs", org.id, "audit-logs", id), {}, { signal }), [org.id, id]);
  const { entry, ...rest } = route.value.query;
  return html`<p><a href=${link("/organizations", org.id, "audit", rest)}>All entries</a></p>
    <${Loaded} data=${data}>${(value) => html`
      <${Card} title=${`${value.requestResource}.${value.requestAction}`}><${Facts} rows=${[
        ["When", html`<${Time} at=${value.creationDate} />`],
        ["By", `${value.actorName} (${value.actorType})${value.onBehalfOfName ? `, for ${value.onBehalfOfName}` : ""}`],
        ["From", value.ipAddress],
        ["Target", targetOf(value)],
        ["Status", html`<${Status} status=${value.responseStatus} />`],
        ["Refused because", value.responseStatus >= 400 ? value.responseBody?.message : null],
        ["Request id", value.requestId && html`<code>${value.requestId}</code>`],
      ]} /></${Card}>
      <${Changes} entry=${value} />
      ${Object.keys(value.requestPathParams).length > 0 && html`<${Card} title="Parameters of the address"><${Json} value=${{ ...value.requestPathParams, ...value.requestQueryParams }} /></${Card}>`}
      ${value.responseBody && html`<${Card} title="Answer"><${Json} value=${value.responseBody} /></${Card}>`}`}</${Loaded}>`;
}

// The fields of the call, each with its value before.
function Changes({ entry }) {
  const { previous, requestBody } = entry;
  const names = [...new Set([...Object.keys(previous || {}), ...Object.keys(requestBody || {})])];
  if (!names.length) return null;
  const value = (given, name) => (given && name in given ? html`<${Json} value=${given[name]} />` : html`<span class="quiet">-</span>`);
  const columns = [
    { label: "Field", render: (name) => html`<code>${name}</code>` },
    ...(previous ? [{ label: "Before", render: (name) => value(previous, name) }] : []),
    { label: previous ? "Requested" : "Value", render: (name) => value(requestBody, name) },
  ];
  return html`<${Card} flush title="Fields of the call" actions=${previous && html`<span class="quiet">Before has the fields that the call changed.</span>`}>
    <${Table} label="Fields of the call" columns=${columns} rows=${names} rowKey=${(name) => name} /></${Card}>`;
}
