// The settings of a part as fields of a form, from the palette of the server for nodes and from the API document for
// triggers.

import { fieldsOf, labelOf, schemaOf } from "../../parts/schema.js";

const TYPES = { json: "json", longTemplate: "longtext" };
// The kinds of settings whose values the fields of triggers take, by the type of the field; all others take texts.
const KINDS = { checkbox: "flag", json: "json", lines: "texts", select: "choice" };
// Settings of triggers that the server takes as on while none of their group is set.
const GROUPS = {
  appFile: [["create", "update", "delete"], ["public", "private"]],
  dataTable: [["insert", "bulkInsert", "update", "delete"]],
  event: [["new", "acknowledged", "resolved"]],
  integration: [["message"]],
};
// What the keys of triggers name: records, found by `by`, or a choice.
const KEYS = {
  dataTable: { what: "Data table", list: "data-tables" },
  endpoint: { what: "Endpoint", list: "experience/endpoints", by: "route", text: (row) => `${row.method} ${row.route}` },
  event: { what: "Level", options: ["any", "info", "warning", "error", "critical"] },
  integration: { what: "Integration", list: "integrations" },
  webhook: { what: "Webhook", list: "webhooks" },
  ...Object.fromEntries(["deviceId", "deviceIdConnect", "deviceIdDisconnect", "deviceIdInactivity"].map((type) => [type, { what: "Device", list: "devices" }])),
  ...Object.fromEntries(["deviceTag", "deviceTagConnect", "deviceTagDisconnect", "deviceTagInactivity"].map((type) => [type, {
    what: "Tag of the devices", placeholder: "site/north", hint: "key/value; key/ for any value, /value for any key." }])),
  mqttTopic: { what: "Topic", placeholder: "plant/+/temperature" },
};
const LISTS = new Set(["rows", "texts", "flags"]);
const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const PLACEHOLDERS = { expression: "{{data.temperature}} > 30", path: "data.temperature" };
const CUSTOM_KINDS = { checkbox: "flag", select: "choice", stringTemplate: "template", numberTemplate: "number", jsonTemplate: "longTemplate", payloadPath: "path" };

// The fields: as of Form, with `path`, where the value stands in the trigger or node, `kind` of the setting, `usual`, what is
// meant without a value, and `group`, the settings that are written with it. `names`: fields of the configuration that are
// shown whether the palette has them or not.
export function fieldsOfPart(part, palette, document, names) {
  if (part.kind === "trigger") return triggerFields(part, document, names);
  const form = palette?.nodeTypes.find((each) => each.type === part.type);
  if (!form) return palette ? [{ name: "config", label: "Configuration", type: "json", rows: 8, path: ["config"], kind: "object", isSet: true }] : [];
  const { settings } = form;
  const fields = settings.map((each) => settingField(each, part.config[each.name], ["config", each.name]));
  const custom = part.type === "CustomNodeExecuteNode" && palette?.customNodes.find((each) => each.id === part.config.customNodeId);
  const own = custom ? customFields(part, custom) : [];
  const shown = own.length ? fields.filter((each) => each.name !== "fields") : fields;
  const others = names.filter((name) => !settings.some((each) => each.name === name));
  return [...own, ...shown, ...others.map((name) => ({ name, label: labelOf(name), type: "json", rows: 4, path: ["config", name], isSet: true }))];
}

function settingField({ name, kind, required, options, rows, default: usual }, value, path, label = labelOf(name.replace(/Template$/, ""))) {
  const field = { name, label, path, kind, needed: required, placeholder: PLACEHOLDERS[kind], isSet: value !== undefined && value !== "", rows: 4 };
  const fitting = fits(kind, value, options);
  if (LISTS.has(kind)) return { ...field, type: "list", fitting, options, settings: rows };
  if (!fitting) return { ...field, type: "json" };
  if (kind === "flag") return { ...field, type: "checkbox", usual };
  if (kind !== "choice") return { ...field, type: TYPES[kind] || "text" };
  return { ...field, type: "select", options: [["", required ? "Choose" : `${usual ?? options[0]} (default)`], ...options] };
}

// Whether a field is a list of rows, of texts or of flags.
export const isList = (field) => field.type === "list";

// The fields of a row of a list.
export const fieldsOfRow = (field, row) => field.settings.map((each) => ({ ...settingField(each, row[each.name], [each.name]), rows: 2 }));

// Whether a value can be changed by a field of this kind; else it is shown as JSON.
function fits(kind, value, options) {
  if (kind === "json" || value === undefined || value === null) return true;
  if (kind === "flag") return typeof value === "boolean";
  if (kind === "choice") return options.includes(value) || value === "";
  if (kind === "rows") return Array.isArray(value) && value.every(isObject);
  if (kind === "texts") return Array.isArray(value) && value.every(isText);
  if (kind === "flags") return Array.isArray(value) && value.length === options.length && value.every((each) => typeof each === "boolean");
  return isText(value);
}

const isText = (value) => typeof value === "string" || typeof value === "number";

// The settings that a custom node declares itself; their values are in `config.fields`.
function customFields(part, custom) {
  const given = Array.isArray(part.config.fields) ? part.config.fields : [];
  return (custom.customNodeConfig?.fields || []).filter((each) => CUSTOM_KINDS[each.type]).map((each) => {
    const id = each.id || each.label;
    const at = given.findIndex((field) => field?.id === id);
    const setting = { name: `fields.${id}`, kind: CUSTOM_KINDS[each.type], required: each.required, options: each.options?.map((option) => option.value), default: each.defaultValue };
    return { ...settingField(setting, at < 0 ? undefined : given[at].value, ["config", "fields"], each.label), hint: each.description, custom: id, isSet: true };
  });
}

function triggerFields(part, document, names) {
  const schema = schemaOfTrigger(document, part.type);
  const { what = "Key", options, ...more } = KEYS[part.type] || {};
  const keys = part.members.map((member, at) => ({
    name: at ? `key ${at + 1}` : "key", label: at ? `${what} ${at + 1}` : what, type: options ? "select" : "text", path: ["key"], member: at, isSet: true,
    needed: what !== "Key", options: options && [["", "Choose"], ...options],
    hint: schema && !at && what === "Key" ? document.components.schemas[schema].properties.key?.description : undefined, ...more,
  }));
  if (!document) return keys; // the others come with it
  const config = schema && schemaOf(document, schema, "config");
  const known = config ? fieldsOf(document, config) : [];
  const fields = known.map((each) => {
    const value = part.config[each.name];
    const type = fits(KINDS[each.type], value, each.options) ? each.type : "json";
    const group = GROUPS[part.type]?.find((names) => names.includes(each.name));
    const usual = group?.every((name) => part.config[name] === undefined);
    return { ...each, type, group, usual, required: false, needed: each.required, value: undefined, path: ["config", each.name], isSet: value !== undefined };
  });
  const others = names.filter((name) => !known.some((each) => each.name === name));
  return [...keys, ...fields, ...others.map((name) => ({ name, label: labelOf(name), type: "json", rows: 4, path: ["config", name], isSet: true })),
    ...(part.type === "virtualButton" ? [{ name: "payload", label: "Payload that the button proposes", type: "longtext", rows: 3, placeholder: '{"temperature": 21}', path: ["meta", "payload"], isSet: true }] : [])];
}

function schemaOfTrigger(document, type) {
  const name = `${type[0].toUpperCase()}${type.slice(1)}Trigger`;
  return document?.components.schemas[name] && name;
}

// What stands at the path of a field, else what is meant without it.
export function valueAt(part, field) {
  const value = field.path.reduce((inner, name) => inner?.[name], part.members[field.member || 0]);
  const own = field.custom === undefined ? value : (Array.isArray(value) ? value : []).find((each) => each?.id === field.custom)?.value;
  return own ?? field.usual;
}

// What a new value of a field changes: {path, value}. Of a group, all settings are written.
export function changeOf(part, field, value) {
  const { path } = field;
  if (field.group) {
    const group = Object.fromEntries(field.group.map((name) => [name, part.config[name] ?? field.usual]));
    return { path: ["config"], value: { ...part.config, ...group, [field.name]: value } };
  }
  if (field.custom === undefined) return { path, value };
  const given = Array.isArray(part.config.fields) ? part.config.fields : [];
  const isOwn = (each) => each?.id === field.custom;
  // The default of a choice counts only without an entry; one without a value is null.
  if (field.type === "select" && value === undefined) return { path, value: given.filter((each) => !isOwn(each)) };
  return { path, value: given.some(isOwn) ? given.map((each) => (isOwn(each) ? { ...each, value } : each)) : [...given, { id: field.custom, value }] };
}
