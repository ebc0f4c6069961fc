// The health and the newest values of the devices of a page of the list, in one call; and which values are shown.

import { get, path } from "../../lib/api.js";
import { exactTime, unitOf, valueText, withUnit } from "../../lib/format.js";
import { route, setQuery } from "../../lib/router.js";
import { html, useEffect, useState } from "../../lib/ui.js";
import { now, Time } from "../../parts/basics.js";
import { openForm } from "../../parts/form.js";
import { Health } from "../../parts/health.js";
import { note } from "../../parts/notes.js";

const SHOWN_MAX = 6;
const DEFAULT_MAX = 3;
const LONG = 40;
const kept = (app) => `trunkline.values.${app}`;

// The names of the attributes whose newest values a list shows: those of the address, else those that were chosen last
// on this machine, else the most common ones of its devices.
export function shownValues(app, list) {
  const chosen = route.value.query.values || localStorage.getItem(kept(app));
  if (chosen) return chosen.split(",").slice(0, SHOWN_MAX);
  const counts = new Map();
  for (const { attributes } of list?.items || []) {
    for (const { name, dataType } of attributes) if (dataType !== "blob") counts.set(name, (counts.get(name) || 0) + 1);
  }
  return [...counts].sort((one, other) => other[1] - one[1]).slice(0, DEFAULT_MAX).map(([name]) => name);
}

// A form that chooses them. What is chosen is in the address, and is remembered on this machine.
export async function chooseValues(app, names) {
  const { attributeNames } = await get(path("applications", app, "devices", "attributeNames"));
  await openForm("Values in the list", {
    fields: [{ name: "values", label: "Attributes", type: "choices", options: attributeNames, hint: `At most ${SHOWN_MAX}; none for the most common ones.` }],
    initial: { values: names }, button: "Show",
    submit: ({ values = [] }) => {
      if (values.length > SHOWN_MAX) throw new Error(`values: ${values.length} are chosen; choose at most ${SHOWN_MAX}.`);
      const text = values.join(",");
      if (text) localStorage.setItem(kept(app), text);
      else localStorage.removeItem(kept(app));
      setQuery({ values: text });
    },
  });
}

// By the id of each device of a list: its health and newest values, undefined for one that is gone; null while they load.
export function useHealthOf(app, list, names) {
  const [found, setFound] = useState(null);
  useEffect(() => {
    if (!list) return undefined;
    const abort = new AbortController();
    const ids = list.items.map((each) => each.id);
    const load = ids.length
      ? get(path("applications", app, "devices", "health"), { deviceIds: ids.join(","), attributes: names.join(",") }, { signal: abort.signal, exact: true })
      : Promise.resolve({ items: [] });
    load.then(
      ({ items }) => setFound(Object.fromEntries(items.map((each) => [each.deviceId, each]))),
      (error) => error.name === "AbortError" || note(`The health of the devices is missing: ${error.message}`, "bad"),
    );
    return () => abort.abort();
  }, [list, names.join()]);
  return found;
}

// The word now: a device that reported when this was loaded is silent when no sign of life came in time.
export function healthNow({ health, expectedBy }) {
  return health === "reporting" && Date.parse(expectedBy) < now.value ? "silent" : health;
}

const waiting = html`<span class="quiet">…</span>`;

// Columns of the list. `found` is what useHealthOf gives.
export const healthColumn = (found) => ({
  label: "Health",
  render: (row) => (found?.[row.id] ? html`<${Health} health=${healthNow(found[row.id])} />` : waiting),
});

export const lifeColumn = (found) => ({
  label: "Sign of life",
  render: (row) => (found?.[row.id] ? html`<${Time} at=${found[row.id].lastSeen} age />` : waiting),
});

export const valueColumns = (found, names) => names.map((name) => ({
  label: name,
  number: true,
  render: (row) => {
    const values = found?.[row.id]?.compositeState, newest = values && Object.hasOwn(values, name) && values[name];
    if (!newest) return html`<span class="quiet">${found || !row.id ? "-" : "…"}</span>`;
    const text = valueText(newest.value);
    const unit = unitOf(row.attributes.find((each) => each.name === name));
    return html`<span title=${exactTime(new Date(newest.time))}>${withUnit(text.length > LONG ? text.slice(0, LONG) + "…" : text, unit)}</span>`;
  },
}));
