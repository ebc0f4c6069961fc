// Dashboards that are made from what devices report: one for a device, one for all devices of an application. They are
// stored as any other, and can be changed like these.

import { get, path, post } from "../../lib/api.js";

const ROW = 8; // columns
const NUMBERS_MAX = 8, STATES_MAX = 6, GRAPHS_MAX = 4, COLUMNS_MAX = 4;
const DEVICES_READ = 100; // of which the attributes are looked at
const LINES_MAX = 12; // devices whose values are lines of one graph
const DAY_MS = 86_400_000;
const OF_DASHBOARD = "{{dashboard.duration}}";
const SHOWN_NEVER = ["blob"];

const SILENT = '{"expectedBy": {"$lt": "{{dashboard.time}}"}}';
const REPORTING = '{"$or": [{"connectionStatus": "connected"}, {"expectedBy": {"$gte": "{{dashboard.time}}"}}]}';
const HEALTH = {
  segments: [{ id: "report", query: REPORTING }, { id: "are silent", query: SILENT }, { id: "were never seen", query: '{"lastSeen": null}' }],
  conditions: [{ condition: "{{value-1.count}} > 0", label: "{{value-1.count}} silent", color: "#c4504f" }, { condition: "{{value-0.count}} === 0", label: "None reports", color: "#d9962b" }],
  defaultCondition: { label: "All that were seen report", color: "#4ba35d" },
};

// Create a dashboard of a device; gives the dashboard.
export const makeDeviceBoard = async (app, device) => post(path("applications", app, "dashboards"), await deviceBoard(app, device));

// The body of a dashboard of what a device has reported: newest values with their courses, graphs by unit, states over time,
// its way, its connections and events.
export async function deviceBoard(app, device) {
  const source = path("applications", app, "devices", device);
  const [record, state] = await Promise.all([get(source), get(`${source}/compositeState`)]);
  const attributes = reported(record.attributes, state);
  const of = (...types) => attributes.filter(({ dataType }) => types.includes(dataType));
  const numbers = of("number").slice(0, NUMBERS_MAX), deviceIds = [device];
  const series = (each) => ({ attribute: each.name, label: wordsOf(each), deviceIds });
  const board = new Rows();
  for (const each of numbers) {
    board.add("graph", 2, 3, wordsOf(each), { displayType: "sparkline", duration: OF_DASHBOARD, segments: [series(each)], ...unitOf(each) });
  }
  const units = [...new Set(numbers.map((each) => unitOf(each).unit || ""))].slice(0, GRAPHS_MAX);
  for (const unit of units) {
    const same = numbers.filter((each) => (unitOf(each).unit || "") === unit);
    board.add("graph", units.length > 1 ? 4 : ROW, 4, same.map(wordsOf).join(", ").slice(0, 100), { duration: OF_DASHBOARD, segments: same.map(series), ...(unit ? { unit } : {}) });
  }
  const states = of("boolean", "string").slice(0, STATES_MAX);
  if (states.length) board.add("graph", ROW, 2 + Math.ceil(states.length / 2), "States", { displayType: "timeline", duration: OF_DASHBOARD, segments: states.map(series) });
  const [place] = of("gps");
  if (place) board.add("map", 4, 4, "Way", { attribute: place.name, deviceIds, duration: DAY_MS });
  board.add("device-log", 4, 4, "Connections", { deviceIds });
  board.add("event-list", 4, 4, "Events", { query: JSON.stringify({ deviceId: device }) });
  return { name: record.name, description: `What ${record.name} reports.`.slice(0, 1000), duration: DAY_MS, refreshRate: 10, blocks: board.blocks };
}

// The body of a dashboard of all devices: how many report, open events, newest values, places and courses.
export async function fleetBoard(app) {
  const { items, totalCount } = await get(path("applications", app, "devices"), { perPage: DEVICES_READ, sortField: "lastUpdated", sortDirection: "desc" });
  const found = new Map(items.flatMap((each) => each.attributes).map((each) => [each.name, each]));
  const often = (name) => items.filter((each) => each.attributes.some((one) => one.name === name)).length;
  const attributes = [...found.values()].filter(({ dataType }) => !SHOWN_NEVER.includes(dataType)).sort((a, b) => often(b.name) - often(a.name));
  const of = (...types) => attributes.filter(({ dataType }) => types.includes(dataType));
  const board = new Rows();
  board.add("device-count", 2, 4, "Health", HEALTH);
  board.add("open-event-indicator", 2, 4, "Open events", {});
  board.add("event-list", 4, 4, "Newest open events", { query: '{"state": {"$ne": "resolved"}}' });
  const values = of("number", "boolean", "string").slice(0, COLUMNS_MAX), [place] = of("gps");
  board.add("device-list", place ? 4 : ROW, 5, "Newest values", { additionalAttributes: values.map((each) => each.name) });
  if (place) board.add("map", 4, 5, "Places", { attribute: place.name });
  const graphs = totalCount > LINES_MAX ? [] : of("number").slice(0, GRAPHS_MAX);
  for (const each of graphs) board.add("graph", graphs.length > 1 ? 4 : ROW, 4, wordsOf(each), { duration: OF_DASHBOARD, segments: [{ attribute: each.name }], ...unitOf(each) });
  return { name: "All devices", description: "How all devices are, from what they report.", duration: DAY_MS, refreshRate: 10, blocks: board.blocks };
}

// The attributes that have reported; all, if none has.
function reported(attributes, state) {
  const usable = attributes.filter(({ dataType }) => !SHOWN_NEVER.includes(dataType));
  const some = usable.filter(({ name }) => name in state);
  return some.length ? some : usable;
}

const wordsOf = ({ name, description }) => (description && description.length <= 40 ? description : name);
const unitOf = ({ attributeTags }) => (attributeTags?.unit && attributeTags.unit.length <= 16 ? { unit: attributeTags.unit } : {});

// Blocks side by side in rows; one for which the row has no room begins the next.
class Rows {
  constructor() {
    this.blocks = [];
    this.x = this.y = this.height = 0;
  }

  add(blockType, width, height, title, config) {
    if (this.x + width > ROW || (this.height && height !== this.height)) {
      this.y += this.height;
      this.x = this.height = 0;
    }
    this.blocks.push({ blockType, startX: this.x, startY: this.y, width, height, title, config });
    this.x += width;
    this.height = Math.max(this.height, height);
  }
}
