// What can be added to a draft: triggers, types of nodes and custom nodes, by category, with a search.

import { get, path } from "../../lib/api.js";
import { wordsOf } from "../../lib/format.js";
import { useData } from "../../lib/hooks.js";
import { html, useMemo, useState } from "../../lib/ui.js";
import { Card, Notice, Problem } from "../../parts/basics.js";
import { newId } from "./change.js";
import { partsOf } from "./shape.js";

const GROUPS = [["trigger", "Triggers"], ["logic", "Logic"], ["data", "Data"], ["output", "Output"], ["debug", "Debug"], ["experience", "Experience"], ["custom", "Custom nodes"]];
// What a trigger begins with, so that it is complete.
const BEGINNINGS = {
  deviceIdInactivity: { config: { seconds: 3600 } },
  deviceTagInactivity: { config: { seconds: 3600 } },
  event: { key: "any" },
  snmpTrap: { config: { udpPort: "162", snmpTrapConfig: {} } },
  timer: { config: { seconds: 60 } },
};

export const usePalette = (app) => useData((signal) => get(path("applications", app, "flows", "palette"), {}, { signal }), [app]);

// What the palette of the server offers to workflows of a class: [{key, kind, group, label, summary, make}]; make(definition)
// gives the part that is added.
export function offersOf(palette, flowClass) {
  const offer = (kind, group, more, type, make) => ({ key: `${kind} ${more.key || type}`, kind, group, ...named(kind, type), ...more, make });
  return [
    ...palette.triggerTypes.filter((each) => each.flowClasses.includes(flowClass)).map(({ type }) => offer("trigger", "trigger", { summary: "" }, type, (definition) => {
      const id = newId(definition, type);
      return { type, ...(type === "virtualButton" ? { key: id } : {}), config: {}, ...BEGINNINGS[type], meta: { category: "trigger", uiId: id }, outputIds: [[]] };
    })),
    ...palette.nodeTypes.filter((each) => each.type !== "CustomNodeExecuteNode" && (flowClass === "customNode" || each.type !== "CustomNodeCapNode")).map(({ type, category, summary }) => offer("node", category, { summary }, type, (definition) => (
      { id: newId(definition, type), type, config: {}, meta: { category }, outputIds: [] }))),
    ...palette.customNodes.filter((each) => each.compatibleFlowClasses[flowClass]).map((each) => offer("node", "custom", { key: each.id, label: each.name, summary: each.shortDescription || each.description || "" }, "CustomNodeExecuteNode", (definition) => ({
      id: newId(definition, "CustomNodeExecuteNode"), type: "CustomNodeExecuteNode",
      config: { customNodeId: each.id, fields: (each.customNodeConfig?.fields || []).filter((field) => field.type !== "section").map((field) => ({ id: field.id || field.label, value: field.defaultValue ?? (field.type === "checkbox" ? false : "") })) },
      meta: { category: each.category || "logic", label: each.name, outputCount: each.customNodeConfig?.outputCount || 1 }, outputIds: [],
    }))),
  ];
}

// `words`: the type, by which a part is found as well.
const named = (kind, type) => ({ label: partsOf({ [kind === "trigger" ? "triggers" : "nodes"]: [{ type }] })[0].label, words: wordsOf(type) });

// put(offer): add it to a free place. grab(event, offer): begin to drag it. isOpen: whether all of it is shown at first.
// field: gets the search field. follows: the name of the part for which a follower is chosen; end(): choose none.
export function Palette({ data, flowClass, put, grab, isOpen, field, follows, end }) {
  const [open] = useState(isOpen);
  const [search, setSearch] = useState("");
  const offers = useMemo(() => (data.value ? offersOf(data.value, flowClass) : []), [data.value, flowClass]);
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const found = offers.filter((each) => words.every((word) => `${each.label} ${each.summary} ${each.words}`.toLowerCase().includes(word)));
  const inName = (each) => words.every((word) => each.label.toLowerCase().includes(word));
  found.sort((one, other) => inName(other) - inName(one));
  const enter = (event) => {
    if (event.key === "Escape" && follows) end();
    if (event.key !== "Enter" || !words.length || !found.length) return;
    event.preventDefault();
    put(found[0]);
  };
  const list = html`<div class="choice-list" role="group" aria-label="Parts to add" tabindex="0">
    ${GROUPS.map(([group, title]) => {
      const own = found.filter((each) => each.group === group);
      return own.length > 0 && html`<h3 key=${group}>${title}</h3>${own.map((each) => html`<button key=${each.key} type="button" class="plain" title=${each.summary} onClick=${() => put(each)}
        onPointerDown=${(event) => event.pointerType !== "touch" && grab(event, each)}>${each.label}</button>`)}`;
    })}
    ${data.value && found.length === 0 && html`<span class="quiet">Nothing matches.</span>`}
  </div>`;
  return html`<${Card} title="Add a part"><div class="stack flow-palette">
    ${follows && html`<${Notice} tone="good">Choose what follows <b>${follows}</b>. <button type="button" class="small" onClick=${end}>Nothing</button></${Notice}>`}
    <input ref=${field} type="search" data-search aria-label="Search parts to add" placeholder="Search, Enter adds the first" value=${search} onInput=${(event) => setSearch(event.target.value)} onKeyDown=${enter} />
    <${Problem} error=${data.error} retry=${data.reload} />
    ${words.length ? list : html`<details open=${open}><summary>All parts</summary>${list}</details>`}
    <p class="quiet">A click adds a part below the selected one and connects it. It can also be dragged to its place, or onto a line to be put into it.</p>
  </div></${Card}>`;
}
