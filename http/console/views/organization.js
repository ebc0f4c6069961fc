// One organization: its members, invitations to it, its settings, and the log of who changed what.

import { get, path } from "../lib/api.js";
import { useData } from "../lib/hooks.js";
import { link } from "../lib/router.js";
import { session } from "../lib/session.js";
import { html } from "../lib/ui.js";
import { Loaded, Page, Tabs } from "../parts/basics.js";
import { AuditLog } from "./organization/audit.js";
import { Invitations } from "./organization/invitations.js";
import { Members } from "./organization/members.js";
import { Settings } from "./organization/settings.js";

// The tabs: [key, text, view, only for administrators].
const TABS = [
  ["members", "Members", Members, false],
  ["invitations", "Invitations", Invitations, true],
  ["audit", "Audit log", AuditLog, true],
  ["settings", "Settings", Settings, false],
];

export function Organization({ org: id, tab = "members" }) {
  const data = useData((signal) => get(path("orgs", id), {}, { signal }), [id]);
  const org = data.value;
  const own = org?.members?.find((each) => each.userId === session.value.userId);
  const isAdmin = own?.role === "admin";
  const shown = TABS.filter(([, , , admins]) => !admins || isAdmin);
  const Tab = TABS.find(([key]) => key === tab)?.[2] || Members;
  return html`<${Page} title=${org ? org.name : "Organization"} trail=${[["Organizations", link("/organizations")]]} lead=${org?.description} of=${data}>
    <${Loaded} data=${data}>${(value) => html`
      <${Tabs} label="Organization" current=${tab} items=${shown.map(([key, text]) => [key, text, link("/organizations", id, key)])} />
      <${Tab} org=${value} isAdmin=${isAdmin} reload=${data.reload} />`}</${Loaded}>
  </${Page}>`;
}
