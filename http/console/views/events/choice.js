// Which events the list shows: its filters, as they stand in the address, and as an advanced query of the API.

import { parseExact } from "../../lib/exact.js";
import { isFound, searchConditions } from "../../parts/search.js";

export const LEVELS = ["critical", "error", "warning", "info"];
export const STATES = ["new", "acknowledged", "resolved"];

// The parts of the address of the list that choose events; `open` is new or acknowledged.
// {state, level, device, q (an advanced query as text), filter (a part of the subject)}

// The advanced query of the filters without the search; null if `q` is not JSON.
export function queryOf({ state, level, device, q }) {
  const parts = [];
  if (state) parts.push(state === "open" ? { state: { $in: ["new", "acknowledged"] } } : { state });
  if (level) parts.push({ level });
  if (device) parts.push({ deviceId: device });
  if (q) {
    try {
      parts.push(parseExact(q));
    } catch {
      return null;
    }
  }
  return together(parts);
}

// The advanced query of all that the list shows, with the search in the subjects. `{}` is every event.
export function wholeQuery(given) {
  const query = queryOf(given);
  const parts = Object.keys(query).length ? [query] : [];
  return together([...parts, ...searchConditions("subject", given.filter || "")]);
}

const together = (parts) => (parts.length > 1 ? { $and: parts } : parts[0] || {});

// Whether an event of the stream matches, as far as it can be told here: the server alone evaluates `q`.
export function mayMatch({ state, level, device, filter }, event) {
  if (state && (state === "open" ? event.state === "resolved" : event.state !== state)) return false;
  if (level && event.level !== level) return false;
  if (device && event.deviceId !== device) return false;
  return isFound(filter || "", event.subject);
}
