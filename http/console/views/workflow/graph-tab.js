// The picture of a version of a workflow with what belongs to it, or its parts as a list.

import { useData } from "../../lib/hooks.js";
import { link, route, setQuery } from "../../lib/router.js";
import { html } from "../../lib/ui.js";
import { Card, Empty, Facts, Loaded, Problem, Time } from "../../parts/basics.js";
import { Buttons } from "./buttons.js";
import { getVersion, useVersionNames, VersionSelect } from "./choice.js";
import { Graph } from "./graph.js";
import { savedLayout } from "./layout.js";
import { PartList, PartPanel, problemsOf } from "./part.js";
import { partsOf } from "./shape.js";

export function GraphTab({ app, flow, source, record }) {
  const { query } = route.value;
  const asked = query.version || "default";
  const versions = useVersionNames(app, flow);
  const data = useData((signal) => getVersion(source, asked, { signal }), [source, asked, record._etag]);
  return html`<div class="card row">
      <${VersionSelect} names=${versions.names} value=${data.value?.version || asked} set=${(name) => setQuery({ version: name, node: "" })} />
      <span class="row flow-choice" role="group" aria-label="Show the workflow as">
        <button class="small" aria-pressed=${query.show !== "list"} onClick=${() => setQuery({ show: "" })}>Picture</button>
        <button class="small" aria-pressed=${query.show === "list"} onClick=${() => setQuery({ show: "list" })}>List</button>
      </span>
      ${query.show !== "list" && data.value && savedLayout(partsOf(data.value)) && html`<label class="row"><input type="checkbox" checked=${query.arrange === "layers"} onChange=${(event) => setQuery({ arrange: event.target.checked ? "layers" : "" })} /> Arrange in layers</label>`}
    </div>
    <${Loaded} data=${data}>${(version) => html`<${Shown} ...${{ app, flow, source, record, version, query }} />`}</${Loaded}>`;
}

function Shown({ app, flow, source, record, version, query }) {
  const href = (key) => link("/applications", app, "workflows", flow, { ...query, node: key });
  const problems = version.problems || [];
  if (!version.triggers.length && !version.nodes.length) {
    const example = {
      triggers: [{ type: "virtualButton", key: "press", outputIds: [["tell"]] }],
      nodes: [{ id: "tell", type: "DebugNode", config: { message: "It works." }, meta: { label: "Tell" }, outputIds: [] }],
    };
    return html`<section class="card flush"><${Empty} title="This version is empty" call=${{ method: "PATCH", path: source, body: example }}>
      <p>A workflow has triggers, and nodes that run after them.</p>
      <div data-write><a class="button primary" href=${link("/applications", app, "workflows", flow, "edit")}>Draw it</a></div></${Empty}></section>`;
  }
  const broken = new Set(partsOf(version).filter((part) => problemsOf(part, problems).length).map((part) => part.key));
  const runs = version.version === "develop" ? record.stats.byVersion.develop : version.stats;
  return html`
    ${problems.map((each) => html`<${Problem} error=${{ message: html`<a href=${href(each.nodeId)}>${each.nodeLabel || each.nodeId || each.nodeType}</a>: ${each.message}` }} />`)}
    <div class=${query.node ? "flow-beside with-panel" : "flow-beside"}>
      ${query.show === "list" ? html`<${PartList} definition=${version} href=${href} problems=${problems} />`
        : html`<div class="stack"><${Graph} definition=${version} arrange=${query.arrange} selected=${query.node} href=${href} problems=${broken} label=${`${version.name}, version ${version.version}.`} />
          <p class="quiet">Drag it to move it. Ctrl and the wheel, or + and \u2212, change its size. Tab and Enter open a part.</p></div>`}
      ${query.node && html`<${PartPanel} definition=${version} selected=${query.node} href=${href} problems=${problems} />`}
    </div>
    <${Buttons} ...${{ app, flow, source, version }} />
    <${Card} title="About this version"><${Facts} rows=${[
      ["Version", version.version],
      ["Runs by default", record.defaultVersionId ? (record.defaultVersionId === version.id ? "yes" : "no") : version.version === "develop" ? "yes" : "no"],
      ["Runs", `${runs?.runCount || 0}, ${runs?.errorCount || 0} failed`],
      ["Notes", version.notes],
      ["Least version of the agent", version.minimumAgentVersion],
      ["Custom nodes", record.customNodes?.length ? record.customNodes.map((each) => html`<div><a href=${link("/applications", app, "workflows", each.id)}>${each.name}</a> ${each.version}</div>`) : undefined],
      ["Used as a custom node", record.customNodeUseCount === undefined ? undefined : `by ${record.customNodeUseCount} versions`],
      ["Created", html`<${Time} at=${version.creationDate} />`],
      ["Changed", html`<${Time} at=${version.lastUpdated} />`],
      ["Id", html`<code>${version.id}</code>`],
    ]} /></${Card}>`;
}
