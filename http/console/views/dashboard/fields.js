// What can be changed of a dashboard beside its blocks and its sharing.

const MINUTE = 60_000;

// Spans of time to choose from: [ms, text].
export const SPANS = [
  [15 * MINUTE, "15 minutes"], [60 * MINUTE, "1 hour"], [6 * 60 * MINUTE, "6 hours"], [24 * 60 * MINUTE, "1 day"],
  [7 * 24 * 60 * MINUTE, "7 days"], [30 * 24 * 60 * MINUTE, "30 days"],
];

export const FIELDS = [
  { name: "name", label: "Name", required: true },
  { name: "description", label: "Description", type: "longtext", rows: 2, blank: "" },
  { name: "refreshRate", label: "Seconds between two refreshes", type: "number", hint: "5 to 600; without it 60." },
  { name: "duration", label: "Milliseconds that charts show", type: "number", hint: "For blocks without a range of their own; without it a day, 86400000." },
];

// What the JSON editor shows: all that the API lets change, but for the sharing.
export const EDITABLE = ["name", "description", "refreshRate", "duration", "resolution", "defaultTheme", "contextConfiguration", "blocks"];
