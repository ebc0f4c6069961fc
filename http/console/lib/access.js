// What the user may do in the application of the view, or with its dashboard of no application. The server decides with each call; this is only for what is
// offered: what changes something (`data-write`, `data-create`, `danger`) is hidden from who only reads, and what needs the role edit (`data-manage`) from
// all who have less (base.css).

import { get, path } from "./api.js";
import { currentApplication } from "./application.js";
import { route } from "./router.js";
import { session } from "./session.js";
import { signal } from "./ui.js";

const MAY = { view: "read", collaborate: "write" };
const ORGANIZATIONS_MAX = 100; // so many are offered
const ALL = { may: "manage" };

// {may: "read", "write" or "manage", role, organizationName, administrators (e-mail addresses)}; the latter two of members.
export const access = signal(ALL);

// The sections with what stays valid when a member leaves.
const MANAGED = new Set(["keys", "tokens", "certificates"]);

// What is offered in a section of the application: "read" or more.
export const offered = (section) => (access.value.may === "write" && MANAGED.has(section) ? "read" : access.value.may);

// Whether the user may change anything here at all.
export const mayChange = () => access.value.may !== "read";

// Whether the user may give the application of the view to another owner.
export const mayTransfer = () => ["owner", "admin", undefined].includes(access.value.role);

// The organizations in which the user may create applications.
export async function organizationsToOwn() {
  const { items } = await get("/orgs", { perPage: ORGANIZATIONS_MAX });
  const own = ({ members = [] }) => members.find((each) => each.userId === session.value.userId)?.role;
  return items.filter((each) => ["edit", "admin"].includes(own(each)));
}

// The path of what the rights of the view are about; undefined outside of applications and dashboards.
export function rightsPlace() {
  const app = currentApplication();
  if (app) return path("applications", app);
  const dashboard = /^\/dashboards\/([0-9a-f]{24})/.exec(route.value.path)?.[1];
  return dashboard && path("dashboards", dashboard);
}

// Find out what the user may do at a place.
export async function findAccess(place, signal) {
  const found = place ? await get(`${place}/access`, {}, { signal }) : {};
  access.value = { ...found, may: MAY[found.role] || "manage" };
}
