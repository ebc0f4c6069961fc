// What the user may do in the application of the view, or with its dashboard of no application. The server decides with each call; this is only for what is
// offered: what changes something (`data-write`, `data-create`, `danger`) is hidden from who only reads (base.css).

import { get, path } from "./api.js";
import { currentApplication } from "./application.js";
import { route } from "./router.js";
import { signal } from "./ui.js";

const MAY = { view: "read", collaborate: "write" };
const ALL = { may: "manage" };

// {may: "read", "write" or "manage", role, organizationName, administrators (e-mail addresses)}; the latter two of members.
export const access = signal(ALL);

// The sections with what stays valid when a member leaves.
const MANAGED = new Set(["keys", "tokens", "certificates"]);

// What is offered in a section of the application: "read" or more.
export const offered = (section) => (access.value.may === "write" && MANAGED.has(section) ? "read" : access.value.may);

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
