// One part of a workflow, shown beside the picture, and all parts as a list.

import { plural } from "../../lib/format.js";
import { html } from "../../lib/ui.js";
import { Badge, Card, Facts, Problem } from "../../parts/basics.js";
import { Json } from "../../parts/json.js";
import { Table } from "../../parts/table.js";
import { outputName, partsOf, triggerText, typeText } from "./shape.js";

// problems: [{nodeId, message}] of the version. href(key): the address of a part, href(""): of none.
export function PartPanel({ definition, selected, href, problems = [], children }) {
  const parts = partsOf(definition);
  const part = parts.find((each) => each.key === selected);
  const close = html`<a class="button small" href=${href("")}>Close</a>`;
  if (!part) {
    return html`<${Card} title="Not in this version" actions=${close}><p>This version has no part <code>${selected}</code>.</p></${Card}>`;
  }
  const leads = part.to.map((ids, output) => ids.length > 0 && html`<div>${outputName(part, output) && html`<${Badge}>${outputName(part, output)}</${Badge}> `}${links(parts, ids, href)}</div>`);
  const from = parts.filter((each) => each.to.some((ids) => ids.includes(part.key))).map((each) => each.key);
  return html`<${Card} title=${part.label} actions=${close}>
    <div class="stack">
      ${problemsOf(part, problems).map((each) => html`<${Problem} error=${each} />`)}
      ${part.note && html`<p>${part.note}</p>`}
      <${Facts} rows=${[
        ["Type", html`${typeText(part.type)} <span class="quiet break">${part.type}</span>`],
        ["Id", part.kind === "node" && part.source.id ? html`<code>${part.source.id}</code>` : undefined],
        ["Place", html`<code>${part.place}</code>`],
        ["Starts by", part.kind === "trigger" ? part.members.map((each) => html`<div class="break">${triggerText(each) || "-"}</div>`) : undefined],
        ["Comes from", from.length ? links(parts, from, href) : undefined],
        ["Leads to", leads.some(Boolean) ? leads : "nothing: a path ends here"],
      ]} />
      <h3>Configuration</h3>
      ${part.members.map((each) => html`<${Json} value=${each.config || {}} />`)}
      ${children}
    </div>
  </${Card}>`;
}

const links = (parts, keys, href) => keys.map((key, at) => html`${at > 0 && ", "}<a href=${href(key)}>${parts.find((each) => each.key === key)?.label || key}</a>`);

// The problems of the server that are about a part: it names nodes by id, triggers by the id of their `meta` or by key.
export function problemsOf(part, problems) {
  const ids = part.kind === "node" ? [part.key] : part.members.flatMap(({ meta, key }) => [meta?.id, meta?.uiId, key]).filter(Boolean);
  return problems.filter((each) => ids.includes(each.nodeId) && each.nodeType === part.type);
}

export function PartList({ definition, href, problems = [] }) {
  const parts = partsOf(definition);
  const columns = [
    { label: "Part", render: (part) => part.label },
    { label: "Kind", render: (part) => (part.kind === "trigger" ? html`<${Badge} tone="accent">trigger</${Badge}>` : "node") },
    { label: "Type", render: (part) => html`${typeText(part.type)}${part.kind === "trigger" && html` <span class="quiet break">${triggerText(part.source)}</span>`}` },
    { label: "Leads to", render: (part) => part.to.map((ids, output) => ids.length > 0 && html`<div>${outputName(part, output) && `${outputName(part, output)}: `}${links(parts, ids, href)}</div>`) },
    { label: "State", render: (part) => problemsOf(part, problems).length > 0 && html`<${Badge} tone="bad">cannot run</${Badge}>` },
  ];
  return html`<${Card} flush title=${plural(parts.length, "part")}><${Table} label="Parts of the workflow" columns=${columns} rows=${parts} rowKey=${(part) => part.key} href=${(part) => href(part.key)} /></${Card}>`;
}
