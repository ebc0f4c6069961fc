// Which devices a list shows: the search, the filters and the advanced query of the address, as one query of the server.
// The list and what is done with all of its devices use the same query, so nothing is changed that was not listed.

import { parseExact } from "../../lib/exact.js";
import { now } from "../../parts/basics.js";
import { searchConditions } from "../../parts/search.js";

// What `show` of the address may be. A device is silent if it is not connected and no sign of life came when it was
// expected; one that was seen and is not silent is reporting.
export const SHOWN = [
  ["", "All"],
  ["silent", "Silent"],
  ["reporting", "Reporting"],
  ["neverSeen", "Never seen"],
  ["connected", "Connected"],
  ["disconnected", "Disconnected"],
  ["deleted", "Deleted"],
];
const STEP_MS = 60_000;
export const CLASSES = ["standalone", "gateway", "peripheral", "floating", "edgeCompute", "system", "embedded"];

// The advanced query as an object, undefined for none; the text itself where it is not valid JSON object, so that the server
// says what is wrong.
export function deviceQuery(address, { withName = false } = {}) {
  const { query: text = "", show = "", class: deviceClass = "", tag = "", filter = "" } = address;
  let query = {};
  if (text.trim()) {
    query = parsed(text);
    if (query === undefined) return text;
  }
  if (show === "connected" || show === "disconnected") query = also(query, "connectionStatus", show);
  if (show === "reporting") query = also(query, "$or", [{ connectionStatus: "connected" }, { expectedBy: { $gte: minute() } }]);
  if (show === "neverSeen") query = also(query, "lastSeen", null);
  if (show === "silent") query = also(query, "expectedBy", { $lt: minute() });
  if (deviceClass) query = also(query, "deviceClass", deviceClass);
  const tags = tagConditions(tag);
  if (tags.length === 1) query = also(query, "tags", tags[0]);
  else if (tags.length) query = also(query, "$or", tags.map((each) => ({ tags: each })));
  if (withName) for (const { name } of searchConditions("name", filter)) query = also(query, "name", name);
  return Object.keys(query).length || withName ? query : undefined;
}

// Whole minutes, so that the query of a list is the same until the next minute.
const minute = () => new Date(Math.floor(now.value / STEP_MS) * STEP_MS).toISOString();

function parsed(text) {
  try {
    const value = parseExact(text);
    return value && typeof value === "object" && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

// One more condition. The query of the reader stays at the top, so that the place in an error is the place in its text.
function also(query, key, condition) {
  if (!(key in query)) return { ...query, [key]: condition };
  return { ...query, $and: [].concat(query.$and ?? [], { [key]: condition }) };
}

// "floor=1, =north, room" as conditions on tags: a key and a value, a value of any key, a key with any value.
export function tagConditions(text) {
  return text.split(",").map((each) => each.trim()).filter(Boolean).map((each) => {
    const cut = each.indexOf("=");
    const key = (cut < 0 ? each : each.slice(0, cut)).trim();
    const value = cut < 0 ? "" : each.slice(cut + 1).trim();
    return { ...(key ? { $tagKey: key } : {}), ...(value ? { $tagValue: value } : {}) };
  }).filter((each) => Object.keys(each).length);
}
