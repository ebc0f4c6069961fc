// The choice of a version of a workflow. All that a view needs of versions for this are their names.

import { get, path } from "../../lib/api.js";
import { useData } from "../../lib/hooks.js";
import { html, useId } from "../../lib/ui.js";

const OFFERED_MAX = 25; // an answer has the whole definition of each version

// The names of the newest versions, and how many there are: {names, total}.
export function useVersionNames(app, flow, refresh) {
  return useData(async (signal) => {
    const query = { perPage: OFFERED_MAX, sortField: "creationDate", sortDirection: "desc" };
    const list = await get(path("applications", app, "flows", flow, "versions"), query, { signal });
    return { names: list.items.map((each) => each.version), total: list.totalCount };
  }, [app, flow, refresh]).value || { names: [], total: 0 };
}

// A version by its id or its name. A path cannot hold a name with a slash, so the list has the id of such a version.
export async function getVersion(source, named, options) {
  const found = named.includes("/") && (await get(source + "/versions", { query: { version: named }, perPage: 1 }, options)).items[0];
  return get(`${source}/versions/${encodeURIComponent(found?.id ?? named)}`, {}, options);
}

// `all`: the text of a further choice that stands for "". `value` is offered also if it is none of the newest.
export function VersionSelect({ names, value, set, all, label = "Version" }) {
  const id = useId();
  const offered = [...new Set(["develop", ...names, ...(value ? [value] : [])])];
  return html`<span class="row"><label for=${id}>${label}</label>
    <select id=${id} value=${value} onChange=${(event) => set(event.target.value)}>
      ${all && html`<option value="" selected=${!value}>${all}</option>`}
      ${offered.map((name) => html`<option value=${name} selected=${name === value}>${name}</option>`)}
    </select></span>`;
}
