// What the pages of alarms share: their addresses, their tabs, and the groups of people by their ids.

import { get, path } from "../../lib/api.js";
import { useData } from "../../lib/hooks.js";
import { link } from "../../lib/router.js";
import { html } from "../../lib/ui.js";
import { Tabs } from "../../parts/basics.js";

const GROUPS_MAX = 1000;

export const home = (app, ...more) => link("/applications", app, "alarms", ...more);
export const rules = (app) => path("applications", app, "alarm-rules");
export const groups = (app) => path("applications", app, "alarm-groups");

export const Views = ({ app, current }) => html`<${Tabs} current=${current} items=${[["open", "Open alarms", home(app)], ["rules", "Rules", home(app, "rules")], ["groups", "Groups", home(app, "groups")]]} />`;

// The groups as options of a field: [id, name].
export async function groupOptions(app, options) {
  const { items } = await get(groups(app), { perPage: GROUPS_MAX }, options);
  return items.map((each) => [each.id, each.name]);
}

// The names of the groups, by their ids.
export function useGroupNames(app) {
  const found = useData((signal) => groupOptions(app, { signal }), [app]);
  return new Map(found.value || []);
}
