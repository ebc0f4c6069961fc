// The advanced query of a list of devices: a text, and help with fields, operators and examples that a click puts in.

import { route, setQuery } from "../../lib/router.js";
import { html, useEffect, useId, useState } from "../../lib/ui.js";
import { Problem } from "../../parts/basics.js";

const FIELDS = [
  ["name, deviceClass, connectionStatus", "text; connectionStatus is connected, disconnected or notConnected"],
  ["tags", 'tags: {"floor": "1"}, {"$tagKey": "floor"}, {"$tagValue": "1"} or null'],
  ["creationDate, lastUpdated, lastSeen, connectedAt, disconnectedAt", "a time: ISO text or milliseconds since 1970"],
  ["id, parentId, gatewayId, ancestorId", "an identifier or null"],
  ["attributeName", "the names of the declared attributes"],
  ["experienceUserId, experienceGroupId", "identifiers of the experience"],
];
const OPERATORS = [
  ["$eq $ne", "equal, not equal"],
  ["$gt $gte $lt $lte", "greater, less"],
  ["$in $nin", "one of a list, none of a list"],
  ["$startsWith $endsWith $contains", "parts of a text"],
  ["$ci", "true ignores case in the other operators"],
  ["$and $or $nor", "lists of queries"],
];
const EXAMPLES = [
  ["Name begins with", { name: { $startsWith: "pump-", $ci: true } }],
  ["One of two classes", { deviceClass: { $in: ["gateway", "edgeCompute"] } }],
  ["With a tag", { tags: { floor: "1" } }],
  ["Without a tag", { tags: { floor: null } }],
  ["Declares an attribute", { attributeName: "temperature" }],
  ["Connected before", { connectedAt: { $lt: "2026-01-01T00:00:00Z" } }],
  ["Not connected, with tags", { $nor: [{ connectionStatus: "connected" }, { tags: null }] }],
];

export function QueryBox() {
  const { query } = route.value;
  const [text, setText] = useState(query.query || "");
  const [wrong, setWrong] = useState(null);
  const id = useId();
  useEffect(() => setText(query.query || ""), [query.query]);
  const apply = (event) => {
    event?.preventDefault();
    try {
      if (text.trim()) JSON.parse(text);
      setWrong(null);
      setQuery({ query: text.trim(), page: "" }, { push: true });
    } catch (error) {
      setWrong({ message: `The query is not JSON: ${error.message}.` });
    }
  };
  const put = (example) => setText(JSON.stringify(example));
  const keys = (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && apply(event);
  return html`<details class="card query-box" open=${Boolean(query.query)}>
    <summary>Advanced query</summary>
    <form onSubmit=${apply} class="stack">
      <div class="field"><label for=${id}>Query</label>
        <textarea id=${id} rows="3" spellcheck=${false} placeholder='{"name": {"$startsWith": "pump-"}}' value=${text}
          aria-invalid=${wrong ? "true" : undefined} onInput=${(event) => setText(event.target.value)} onKeyDown=${keys}></textarea></div>
      <${Problem} error=${wrong} />
      <div class="row"><button class="primary">Apply</button>
        ${query.query && html`<button type="button" onClick=${() => setQuery({ query: "", page: "" }, { push: true })}>Remove the query</button>`}
        <span class="quiet">Examples:</span>
        ${EXAMPLES.map(([name, example]) => html`<button type="button" class="small" onClick=${() => put(example)}>${name}</button>`)}</div>
      <details><summary>Fields and operators</summary>
        <div class="columns"><${Words} title="Fields" rows=${FIELDS} /><${Words} title="Operators" rows=${OPERATORS} /></div></details>
    </form>
  </details>`;
}

const Words = ({ title, rows }) => html`<div><h3>${title}</h3>
  <dl class="words">${rows.map(([name, meaning]) => html`<dt><code>${name}</code></dt><dd>${meaning}</dd>`)}</dl></div>`;
