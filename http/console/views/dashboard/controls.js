// The range of a dashboard and the values of its parameters. Both are in the address.

import { get, path } from "../../lib/api.js";
import { tagText } from "../../lib/format.js";
import { useData } from "../../lib/hooks.js";
import { setQuery } from "../../lib/router.js";
import { html, useId } from "../../lib/ui.js";
import { TimeField } from "../../parts/time.js";
import { SPANS } from "./fields.js";

const PREFIX = "ctx.";

// What the address says, as the body of the call for the data.
export function chosen(dashboard, query) {
  const body = {};
  if (query.duration) body.duration = Number(query.duration);
  if (query.end) body.end = query.end;
  const ctx = {};
  for (const { name, type } of dashboard.contextConfiguration) {
    const text = query[PREFIX + name];
    if (text !== undefined) ctx[name] = type === "deviceTag" ? tag(text) : text;
  }
  return Object.keys(ctx).length ? { ...body, ctx } : body;
}

function tag(text) {
  const cut = text.indexOf("=");
  if (cut < 0) return { key: text };
  return { ...(cut > 0 ? { key: text.slice(0, cut) } : {}), value: text.slice(cut + 1) }; // a tag may have only a value
}


// `whole`: also the range, and parameters that the dashboard does not check; for this the reader needs a token. `app` is
// the application of the dashboard, if it has one.
export function Controls({ dashboard, query, app, whole }) {
  const parameters = dashboard.contextConfiguration.filter((each) => whole || each.validationEnabled);
  if (!whole && !parameters.length) return null;
  return html`<div class="board-controls">
    ${whole && html`<${Range} query=${query} />`}
    ${parameters.map((each) => html`<${Parameter} key=${each.name} parameter=${each} text=${query[PREFIX + each.name]} app=${whole && (each.applicationId || app)} />`)}
  </div>`;
}

function Range({ query }) {
  const id = useId();
  const end = (ms) => setQuery({ end: ms && new Date(ms).toISOString() });
  return html`<div class="field"><label for=${id}>Range</label>
      <select id=${id} value=${query.duration || ""} title="Blocks with a range of their own keep it." onChange=${(event) => setQuery({ duration: event.target.value })}>
        <option value="">as the dashboard says</option>
        ${SPANS.map(([ms, text]) => html`<option value=${String(ms)} selected=${String(ms) === query.duration}>${text}</option>`)}
      </select></div>
    <div class="field"><label for=${id + "-end"}>Until</label>
      <${TimeField} id=${id + "-end"} value=${query.end || ""} set=${end} /></div>`;
}

function Parameter({ parameter, text, app }) {
  const id = useId();
  const { name, type, defaultValue, validationConfig: allowed = {} } = parameter;
  const usual = type === "deviceTag" ? tagText(defaultValue) : String(defaultValue);
  const choice = type === "deviceAttribute" ? allowed.attributes : type === "deviceId" ? allowed.deviceIds : type === "deviceTag" ? allowed.deviceTags?.map(tagText) : null;
  const names = useNames(type === "deviceId" ? app : null, [...new Set([...(choice || []), usual])]);
  const set = (value) => setQuery({ [PREFIX + name]: value === usual ? "" : value });
  const label = html`<label for=${id}>${name}</label>`;
  if (choice?.length) {
    const options = choice.includes(usual) ? choice : [usual, ...choice];
    return html`<div class="field">${label}<select id=${id} onChange=${(event) => set(event.target.value)}>
      ${options.map((each) => html`<option value=${each} selected=${each === (text ?? usual)}>${names[each] || each}</option>`)}</select></div>`;
  }
  const hint = { deviceTag: "key=value", deviceId: "the id of a device", number: "a number" }[type] || "";
  return html`<div class="field">${label}<input id=${id} inputmode=${type === "number" ? "decimal" : undefined} value=${text ?? usual} placeholder=${hint}
    onChange=${(event) => set(event.target.value.trim())} /></div>`;
}

// The names of devices by id; none without an application.
function useNames(app, ids) {
  const load = async (signal) => {
    if (!app) return {};
    const query = { query: { id: { $in: ids } }, perPage: 100 };
    const { items } = await get(path("applications", app, "devices"), query, { signal });
    return Object.fromEntries(items.map((each) => [each.id, each.name]));
  };
  return useData(load, [app, ids.join()]).value || {};
}
