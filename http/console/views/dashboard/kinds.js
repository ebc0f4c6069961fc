// The kinds of blocks that have a form: what each is called, which blocks are of it, how a new one begins, and its fields.
// Everything else about blocks is in their JSON.

import { duration } from "../../lib/format.js";
import { SPANS } from "./fields.js";

const OF_DASHBOARD = "{{dashboard.duration}}";
const MINUTE = 60_000, HOUR = 60 * MINUTE;
const OPEN = '{"state": {"$ne": "resolved"}}';
const URGENT = '{"state": {"$ne": "resolved"}, "level": {"$in": ["critical", "error"]}}';

const RANGE = { name: "config.duration", label: "Range", type: "select", number: true, options: [[OF_DASHBOARD, "as the dashboard says"], ...SPANS.map(([ms, text]) => [String(ms), `last ${text}`])] };
const SPAN = { ...RANGE, label: "Value of", options: [["", "the newest report"], ...RANGE.options.slice(1), [OF_DASHBOARD, "the range of the dashboard"]], hint: "Over a range, Values says which: the mean, the highest and so on." };
const RESOLUTION = {
  name: "config.resolution", label: "A point for each", type: "select", number: true, hint: "For series that are not shown as they were reported.",
  options: [["", "width that fits the range"], ...[MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 24 * HOUR].map((ms) => [String(ms), duration(ms)])],
};
const UNIT = { name: "config.unit", label: "Unit", placeholder: "°C, %, bar" };
const DIGITS = { name: "config.precision", label: "Decimals", type: "number" };
const ENDS = [{ name: "config.gaugeMin", label: "From", type: "number" }, { name: "config.gaugeMax", label: "To", type: "number" }];
const LABELLED = { name: "config.additionalAttributes", label: "Newest values of", type: "attributes" };
const TAGGED = { name: "config.filter.tags", label: "Only devices with these tags", type: "filters", rows: 2, hint: "A tag on each line: key=value, key, or =value.", show: ({ config }) => typeof config?.filter !== "string" };
const EVENTS = { name: "config.query", label: "Which events", type: "select", options: [[OPEN, "open ones"], [URGENT, "open ones that are critical or errors"], ["{}", "all"]] };

const gauge = (kind, label, types, config, fields) => ({
  kind, label, type: "gauge", size: [2, 3], single: true, thresholds: true, is: (given) => types.includes(gaugeType(given)),
  config: { gaugeType: types[0], ...config }, fields: [SPAN, UNIT, DIGITS, ...fields],
});
const graph = (kind, label, size, is, config, fields, more) => ({ kind, label, type: "graph", size, many: true, is, config: { duration: OF_DASHBOARD, ...config }, fields: [RANGE, ...fields], thresholds: true, ...more });
const plain = (type, label, size, config, fields, more) => ({ kind: type, label, type, size, is: () => true, config, fields, ...more });

// kind, label, type (of the block), size [columns, rows], is(config): whether a block of the type is of this kind, config: at
// first, fields (of form.js; also "attributes": names of attributes). single, many: the form has one series, or several;
// devices: it has a choice of devices; thresholds: it has thresholds.
export const KINDS = [
  graph("graph", "Values over time", [4, 4], ({ displayType }) => !["sparkline", "timeline"].includes(displayType), {}, [RESOLUTION, UNIT]),
  graph("sparkline", "Newest value and its course", [2, 3], ({ displayType }) => displayType === "sparkline", { displayType: "sparkline" }, [RESOLUTION, UNIT, DIGITS]),
  graph("timeline", "States over time", [4, 3], ({ displayType }) => displayType === "timeline", { displayType: "timeline" }, [], { raw: true }),
  gauge("number", "Newest value as a number", ["number"], {}, []),
  gauge("dial", "Newest value on a dial", ["dial", "needle"], { gaugeMin: 0, gaugeMax: 100 }, ENDS),
  gauge("level", "Newest value along a bar", ["tank", "thermometer", "battery"], { gaugeMin: 0, gaugeMax: 100 }, ENDS),
  plain("bar", "Values of devices as bars", [4, 4], {}, [SPAN, UNIT, DIGITS, { name: "config.xAxisMin", label: "Bars begin at", type: "number" }, { name: "config.xAxisMax", label: "Bars end at", type: "number" }], { many: true, thresholds: true }),
  plain("pie", "Shares of a whole", [4, 4], {}, [SPAN], { many: true }),
  plain("device-list", "Devices with newest values", [4, 4], {}, [LABELLED, TAGGED]),
  plain("device-state-table", "States of devices", [4, 4], {}, [{ ...LABELLED, name: "config.attributes", label: "Attributes" }, { ...SPAN, hint: undefined, label: "Rows of" }], { devices: true }),
  plain("device-count", "Number of devices", [2, 2], { segments: [{ id: "devices", query: "{}" }] }, [
    { name: "config.segments.0.id", label: "What is counted", required: true },
    { name: "config.segments.0.query", label: "Query", type: "longtext", rows: 3, required: true, hint: 'As JSON: {} for all devices, {"tags": {"$tagKey": "site", "$tagValue": "north"}} for some.' },
  ]),
  plain("event-list", "Events", [4, 4], { query: OPEN }, [EVENTS]),
  plain("open-event-indicator", "Open events by level", [2, 3], {}, []),
  plain("map", "Places of devices", [4, 4], {}, [{ name: "config.attribute", label: "Attribute with the place", type: "attribute" }, { ...SPAN, hint: undefined, label: "Way of", options: [["", "none: the newest place"], ...SPAN.options.slice(1)] },
    { name: "config.valueAttribute", label: "Coloured by", type: "attribute", optional: true }, UNIT], { devices: true, thresholds: true }),
  plain("data-table", "Rows of a data table", [4, 4], {}, [{ name: "config.dataTableId", label: "Data table", type: "table" }]),
  plain("section-header", "Text", [4, 2], {}, [{ name: "config.content", label: "Text", type: "longtext", rows: 6, hint: "Markdown: # heading, **bold**, - list, [text](address)." }]),
];

// A gauge without a type is a dial if it says from where to where.
function gaugeType({ gaugeType: given, gaugeMin, gaugeMax }) {
  return given || (gaugeMin !== undefined && gaugeMax !== undefined ? "dial" : "number");
}

// The kind of a block; undefined for one that has no form.
export const kindOf = (block) => KINDS.find(({ type, is }) => type === block.blockType && is(block.config || {}));

// A block of this kind, with what another one has of it: the title, the place, the series and the devices.
export function blockOf(kind, before = {}) {
  const { config: old = {}, blockType, startX = 0, startY = 0, width, height, ...rest } = before;
  const segments = seriesOf(before), choice = kind.devices ? { deviceIds: old.deviceIds } : {};
  const series = kind.single ? { segment: segments[0] || {} } : kind.many ? { segments: segments.length ? segments : [{}] } : {};
  const kept = Object.fromEntries(["unit", "precision", "thresholds"].filter((name) => kind.thresholds && old[name] !== undefined).map((name) => [name, old[name]]));
  return { ...rest, blockType: kind.type, startX, startY, width: width ?? kind.size[0], height: height ?? kind.size[1], config: { ...kind.config, ...kept, ...series, ...choice } };
}

// The series of a block with one or several.
export function seriesOf({ blockType, config = {} }) {
  if (blockType === "gauge") return config.segment ? [config.segment] : [];
  return ["graph", "bar", "pie"].includes(blockType) ? config.segments || [] : [];
}

// A copy with another value at a path such as "config.segments.0.id"; undefined removes it.
export function withValue(node, name, value) {
  const [first, ...rest] = name.split(".");
  const copy = Array.isArray(node) ? [...node] : { ...node };
  copy[first] = rest.length ? withValue(node?.[first] ?? {}, rest.join("."), value) : value;
  if (copy[first] === undefined && !Array.isArray(copy)) delete copy[first];
  return copy;
}
