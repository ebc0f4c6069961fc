// The query of a list of rows: conditions to choose from, or the advanced query as JSON.

import { exactJson, parseExact } from "../../lib/exact.js";
import { localTime, timeStep } from "../../lib/format.js";
import { html, useEffect, useState } from "../../lib/ui.js";
import { fits, textOf, valueOf } from "./values.js";

const EMPTY_OPERATORS = [["null", "is null"], ["notNull", "is not null"]];
const COMPARISONS = [["$gt", ">"], ["$gte", "\u2265"], ["$lt", "<"], ["$lte", "\u2264"]];
const OPERATORS = {
  string: [["$eq", "is"], ["$ne", "is not"], ["$contains", "contains"], ["$startsWith", "begins with"], ["$endsWith", "ends with"], ["ci", "contains (any case)"], ...COMPARISONS, ...EMPTY_OPERATORS],
  number: [["$eq", "="], ["$ne", "\u2260"], ...COMPARISONS, ...EMPTY_OPERATORS],
  boolean: [["$eq", "is"], ["$ne", "is not"], ...EMPTY_OPERATORS],
  time: [["$gte", "from"], ["$lt", "before"]],
};
const HELP = [
  ['{"part": "valve"}', "the column is this value; several columns must all match"],
  ['{"pieces": {"$gte": 5, "$lt": 10}}', "$eq $ne $gt $gte $lt $lte compare values of the same type"],
  ['{"part": {"$in": ["valve", "pump"]}}', "one of the values; $nin: none of them"],
  ['{"part": {"$contains": "val", "$ci": true}}', "$startsWith $endsWith $contains; $ci ignores case"],
  ['{"part": null}', 'without a value; {"$ne": null}: with one'],
  ['{"$or": [{"part": "valve"}, {"pieces": {"$lt": 3}}]}', "one of the queries matches; also $and, $nor"],
  ['{"createdAt": {"$gte": "2026-05-01"}}', "times as ISO text or milliseconds; also updatedAt, and id"],
];

export const fieldsOf = (columns) => [
  ...columns.map((each) => [each.name, each.dataType]), ["id", "string"], ["createdAt", "time"], ["updatedAt", "time"],
];

// The query of conditions [{field, operator, text}], null if there are none. What has no value yet is left out.
export function queryOf(given, fields) {
  const types = Object.fromEntries(fields);
  const conditions = given.filter(({ operator, text }) => text !== "" || operator === "null" || operator === "notNull");
  const parts = conditions.map(({ field, operator, text }) => {
    const type = types[field];
    switch (operator) {
      case "null": return { [field]: null };
      case "notNull": return { [field]: { $ne: null } };
      case "ci": return { [field]: { $contains: text, $ci: true } };
      default: {
        const value = type === "time" ? timeOf(field, text) : valueOf(type, text);
        if (type !== "time" && !fits(type, value)) throw new Error(`${field}: "${text}" is no ${type}; the column has only values of this type.`);
        return { [field]: operator === "$eq" ? value : { [operator]: value } };
      }
    }
  });
  if (parts.length < 2) return parts[0] || null;
  const distinct = new Set(conditions.map((each) => each.field)).size === parts.length;
  return distinct ? Object.assign({}, ...parts) : { $and: parts };
}

// The conditions of a query; null if it has more than conditions that all must match.
export function conditionsOf(query, fields) {
  const types = Object.fromEntries(fields);
  const parts = query && Object.keys(query).length === 1 && Array.isArray(query.$and) ? query.$and : [query || {}];
  const found = [];
  for (const part of parts) {
    if (part === null || typeof part !== "object") return null;
    for (const [field, given] of Object.entries(part)) {
      const condition = types[field] && conditionOf(field, given, types[field]);
      if (!condition) return null;
      found.push(condition);
    }
  }
  return found;
}

function conditionOf(field, given, type) {
  if (given === null) return { field, operator: "null", text: "" };
  if (typeof given !== "object") return type === "time" ? null : { field, operator: "$eq", text: textOf(given) };
  const entries = Object.entries(given);
  if (given.$ci === true && entries.length === 2 && typeof given.$contains === "string") return { field, operator: "ci", text: given.$contains };
  const [operator, value] = entries[0] || [];
  if (entries.length !== 1 || (value !== null && typeof value === "object")) return null;
  if (operator === "$ne" && value === null) return { field, operator: "notNull", text: "" };
  if (!OPERATORS[type].some(([each]) => each === operator)) return null;
  return { field, operator, text: type === "time" ? localTime(value) : textOf(value) };
}

function timeOf(field, text) {
  const time = new Date(text);
  if (Number.isNaN(time.getTime())) throw new Error(`${field}: choose a date and a time.`);
  return time.toISOString();
}

// value: the query that is shown, null for all rows. set(query) shows another one.
export function QueryForm({ columns, value, set }) {
  const fields = fieldsOf(columns);
  const text = value ? exactJson(value) : "";
  const first = () => {
    const found = conditionsOf(value, fields);
    return {
      conditions: found?.length ? found : [{ field: fields[0][0], operator: OPERATORS[fields[0][1]][0][0], text: "" }],
      json: found ? null : exactJson(value, text.length > 100 ? 2 : 0), // the text, where the query is written as JSON
    };
  };
  const [conditions, setConditions] = useState(() => first().conditions);
  const [json, setJson] = useState(() => first().json);
  const [error, setError] = useState("");
  useEffect(() => {
    setError("");
    setConditions(first().conditions);
    setJson(first().json);
  }, [text, columns]);
  const submit = (event) => {
    event.preventDefault();
    try {
      setError("");
      set(json === null ? queryOf(conditions, fields) : json.trim() ? parseExact(json) : null);
    } catch (failure) {
      setError(json === null ? failure.message : `This is not JSON yet: ${failure.message}`);
    }
  };
  const toJson = () => {
    let written = value;
    try {
      written = queryOf(conditions, fields);
    } catch {
      // What is not complete is left out.
    }
    setJson(exactJson(written || {}));
  };
  return html`<form class="query" onSubmit=${submit} aria-label="Query">
    ${json === null ? html`<${Conditions} ...${{ fields, conditions, set: setConditions }} />`
      : html`<textarea aria-label="Query as JSON" rows=${Math.min(16, Math.max(2, json.split("\n").length))} spellcheck=${false} value=${json} onInput=${(event) => setJson(event.target.value)}></textarea>`}
    ${error && html`<p class="problem" role="alert">${error}</p>`}
    <div class="row"><button class="primary small">Show matching rows</button>
      ${value && html`<button type="button" class="small" onClick=${() => set(null)}>Show all rows</button>`}
      ${json === null ? html`<button type="button" class="small" onClick=${() => setConditions([...conditions, { field: fields[0][0], operator: OPERATORS[fields[0][1]][0][0], text: "" }])}>Another condition</button>
        <button type="button" class="small" onClick=${toJson}>Write as JSON</button>`
        : html`<button type="button" class="small" disabled=${conditionsOf(value, fields) === null} onClick=${() => setJson(null)}>Choose conditions</button>`}
    </div>
    ${json !== null && html`<details><summary>How a query is written</summary><div class="table-box" tabindex="0" role="region" aria-label="Examples of queries"><table><tbody>
      ${HELP.map(([example, meaning]) => html`<tr><td><code>${example}</code></td><td>${meaning}</td></tr>`)}</tbody></table></div></details>`}
  </form>`;
}

function Conditions({ fields, conditions, set }) {
  const types = Object.fromEntries(fields);
  const change = (at, changes) => set(conditions.map((each, index) => (index === at ? { ...each, ...changes } : each)));
  const options = (list, chosen) => list.map(([value, text]) => html`<option value=${value} selected=${value === chosen}>${text}</option>`);
  return conditions.map(({ field, operator, text }, at) => {
    const type = types[field];
    const chooseField = (event) => {
      const next = OPERATORS[types[event.target.value]];
      change(at, { field: event.target.value, operator: next.some(([each]) => each === operator) ? operator : next[0][0], text: types[event.target.value] === type ? text : "" });
    };
    const typed = { "aria-label": `Value of condition ${at + 1}`, value: text, onInput: (event) => change(at, { text: event.target.value }) };
    let input = html`<input ...${typed} placeholder="Value" inputmode=${type === "number" ? "decimal" : undefined} />`;
    if (operator === "null" || operator === "notNull") input = null;
    else if (type === "time") input = html`<input type="datetime-local" step=${timeStep(text, "1")} ...${typed} />`;
    else if (type === "boolean") input = html`<select ...${typed}>${options([["", "choose"], ["true", "true"], ["false", "false"]], text)}</select>`;
    return html`<div class="condition" key=${at}>
      <select aria-label=${`Column of condition ${at + 1}`} value=${field} onChange=${chooseField}>${options(fields.map(([name]) => [name, name]), field)}</select>
      <select aria-label=${`Operator of condition ${at + 1}`} value=${operator} onChange=${(event) => change(at, { operator: event.target.value })}>${options(OPERATORS[type], operator)}</select>
      ${input}
      ${conditions.length > 1 && html`<button type="button" class="small" aria-label=${`Leave out condition ${at + 1}`} onClick=${() => set(conditions.filter((each, index) => index !== at))}>Leave out</button>`}
    </div>`;
  });
}
