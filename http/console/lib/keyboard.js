// Keys for the whole console, for who is logged in. Single letters work while no field has the focus.

import { currentApplication } from "./application.js";
import { go, link } from "./router.js";
import { session } from "./session.js";

// g, then one of these: sections of the current application, or of the console.
export const PLACES = {
  o: ["Overview", ""], d: ["Devices", "devices"], t: ["Data tables", "tables"], e: ["Events", "events"], l: ["Alarms", "alarms"],
  w: ["Workflows", "workflows"], b: ["Dashboards", "dashboards"], f: ["Files", "files"], j: ["Jobs", "jobs"],
  a: ["Applications", "/applications"], u: ["Your account", "/account"],
};
const CHORD_MS = 1500;

export function listenToKeys(showHelp) {
  let chord = 0;
  document.addEventListener("keydown", (event) => {
    const inField = event.target.closest?.("input, select, textarea, [contenteditable]");
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (inField) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (!session.value) return;
    const afterG = Date.now() - chord < CHORD_MS;
    chord = 0;
    if (afterG && PLACES[event.key]) {
      const [, place] = PLACES[event.key];
      const id = currentApplication();
      if (place.startsWith("/")) go(link(place));
      else if (id) go(place ? link("/applications", id, place) : link("/applications", id));
    } else if (event.key === "g") {
      chord = Date.now();
    } else if (event.key === "/") {
      document.querySelector("[data-search]")?.focus();
    } else if (event.key === "?") {
      showHelp();
    } else if (event.key === "n") {
      const create = document.querySelector("[data-create]");
      if (create?.checkVisibility()) create.click();
    } else if (event.key === "j" || event.key === "k") {
      move(event.key === "j" ? 1 : -1);
    } else if (event.key === "Enter" && event.target.matches("body, main, h1")) {
      document.querySelector("tr.current a")?.click();
      return;
    } else {
      return;
    }
    event.preventDefault();
  });
}

// Mark the next or the previous row of the first table.
function move(step) {
  const rows = [...document.querySelectorAll("tr[data-href]")];
  if (!rows.length) return;
  const at = rows.findIndex((row) => row.classList.contains("current"));
  const next = rows[at < 0 ? 0 : Math.min(Math.max(at + step, 0), rows.length - 1)];
  rows[at]?.classList.remove("current");
  next.classList.add("current");
  next.scrollIntoView({ block: "nearest" });
}
