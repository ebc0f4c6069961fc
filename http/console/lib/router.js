// Routes by the hash of the address: #/applications/ID/devices?filter=a. Every view has an address of its own.

import { computed, signal } from "./ui.js";

const hash = signal(location.hash);
addEventListener("hashchange", () => (hash.value = location.hash));

// {path: "/applications/ID", query: {filter: "a"}}
export const route = computed(() => {
  const text = hash.value.replace(/^#/, "") || "/";
  const cut = text.indexOf("?");
  const query = cut < 0 ? {} : Object.fromEntries(new URLSearchParams(text.slice(cut + 1)));
  return { path: cut < 0 ? text : text.slice(0, cut), query };
});

// The address of a view, for href: link("/applications", id, "devices", {filter: "a"}). Segments are encoded.
export function link(start, ...rest) {
  const query = typeof rest.at(-1) === "object" ? rest.pop() : null;
  const segments = rest.map((each) => "/" + encodeURIComponent(each)).join("");
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query || {})) {
    if (value !== undefined && value !== null && value !== "") given.set(name, value);
  }
  const text = given.toString();
  return "#" + start + segments + (text ? "?" + text : "");
}

export function go(address) {
  location.hash = address.replace(/^#/, "");
}

// Change some of the query of the current view. Does not add a step to the history unless `push`.
export function setQuery(changes, { push = false } = {}) {
  const { path, query } = route.peek();
  const address = link(path, { ...query, ...changes });
  if (push) {
    location.hash = address;
  } else {
    history.replaceState(null, "", address);
    hash.value = location.hash;
  }
}

// A segment of an address; "" if its encoding is broken.
function decoded(segment) {
  try {
    return decodeURIComponent(segment);
  } catch {
    return "";
  }
}

// The first row whose pattern matches, with the values of its ":names"; null if none does.
export function match(rows, path) {
  const given = path.split("/");
  for (const row of rows) {
    const wanted = row.path.split("/");
    if (wanted.length !== given.length) continue;
    const params = {};
    const fits = wanted.every((each, at) => {
      if (!each.startsWith(":")) return each === given[at];
      params[each.slice(1)] = decoded(given[at]);
      return Boolean(params[each.slice(1)]);
    });
    if (fits) return { row, params };
  }
  return null;
}
