// Which commands a device knows, and the fields of their payloads: from its tags `command`, which it may have of its recipe,
// and from the commands that it was sent before.
//
// A tag is the name of a command and its fields, each with its type: `setTarget value:number mode:text`. A type alone is
// that of the whole payload: `setTarget number`.

const COMMANDS_MAX = 30;
const FIELDS_MAX = 12;
const KEY = /^(?!__proto__$)[\w-]{1,60}$/;
const TYPES = { number: "number", boolean: "boolean", text: "text", string: "text", json: "json" };
export const WHOLE = " payload"; // the field that is the payload itself; no key of a form has a blank

// The tags that are not about commands.
export const plainTags = (tags) => tags.filter(({ key }) => key !== "command");

// [{name, fields: [{key, type}], last: the payload with which it was sent last}]: those of the tags, then by time, the newest first.
// entries: of the log of commands, the newest first.
export function commandShapes(tags, entries) {
  const found = new Map();
  for (const { key, value } of tags) {
    const [name, ...rest] = key === "command" ? value.split(/\s+/).filter(Boolean) : [];
    if (name && !found.has(name)) found.set(name, { name, fields: rest.slice(0, FIELDS_MAX).map(fieldOfTag), last: undefined, isTold: rest.length > 0 });
  }
  for (const { name, payload } of entries) {
    if (!found.has(name) && found.size < COMMANDS_MAX) found.set(name, { name, fields: [], last: undefined });
    const shape = found.get(name);
    if (!shape || payload === undefined || payload === null) continue;
    shape.last ??= payload;
    if (!shape.isTold) addFields(shape, payload);
  }
  return [...found.values()];
}

function fieldOfTag(text) {
  const [key, type] = text.includes(":") ? text.split(":") : TYPES[text] ? [WHOLE, text] : [text, "text"];
  return { key, type: TYPES[type] || "json" };
}

// The fields of a payload that are not there yet. A payload that is no object of plain keys is one field.
function addFields(shape, payload) {
  const isObject = typeof payload === "object" && !Array.isArray(payload) && Object.keys(payload).every((key) => KEY.test(key));
  const given = isObject ? Object.entries(payload) : [[WHOLE, payload]];
  if (shape.fields.length && isObject === (shape.fields[0].key === WHOLE)) return; // the newest form is the one to send
  for (const [key, value] of given) {
    if (shape.fields.length < FIELDS_MAX && !shape.fields.some((each) => each.key === key)) shape.fields.push({ key, type: typeOf(value) });
  }
}

function typeOf(value) {
  if (typeof value === "boolean") return "boolean";
  if (typeof value === "string") return "text";
  return typeof value === "number" ? "number" : "json";
}
