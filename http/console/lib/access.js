// What the user may do in the application of the view. The server decides with each call; this is only for what is
// offered: what changes something (`data-write`, `data-create`, `danger`) is hidden from who only reads (base.css).

import { get, path } from "./api.js";
import { signal } from "./ui.js";

const MAY = { view: "read", collaborate: "write" };
const ALL = { may: "manage" };

// {may: "read", "write" or "manage", role, organizationName, administrators (e-mail addresses)}; the latter two of members.
export const access = signal(ALL);

// The sections with what stays valid when a member leaves.
const MANAGED = new Set(["keys", "tokens", "certificates"]);

// What is offered in a section of the application: "read" or more.
export const offered = (section) => (access.value.may === "write" && MANAGED.has(section) ? "read" : access.value.may);

// Find out what the user may do in an application; undefined outside of one.
export async function findAccess(app, signal) {
  const found = app ? await get(path("applications", app, "access"), {}, { signal }) : {};
  access.value = { ...found, may: MAY[found.role] || "manage" };
}
