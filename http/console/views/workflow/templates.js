// The workflows that most people begin with: each with the questions it needs, and the definition that the answers make.

import { path } from "../../lib/api.js";

const one = (values, name, what) => {
  if (!values[name]?.[0]) throw new Error(`${name}: no ${what} is chosen; search for one by its name.`);
  return values[name][0];
};
const state = (device, next) => ({ type: "deviceId", key: device, config: {}, meta: { category: "trigger" }, outputIds: [[next]] });
const node = (id, type, label, config, outputIds = [], category = "output") => ({ id, type, config, meta: { category, label }, outputIds });
const mail = (id, address, subject, body) => node(id, "StructureEmailNode", "Send the mail", { toAddresses: [address], subjectTemplate: subject, bodyTemplate: body });
// Its output 1 is taken once, when the value becomes too high, and again after it was not.
const rises = (attribute, limit, next) => node("rises", "LatchNode", `${attribute} above ${limit}`, {
  latchExpression: `{{data.${attribute}}} > ${limit}`, resetExpression: `{{data.${attribute}}} <= ${limit}`, latchIdTemplate: "{{triggerId}}",
}, [[], [next]], "logic");
const told = (attribute) => `{{deviceName}}: ${attribute} is {{data.${attribute}}} at {{time}}.`;

const DEVICE = ["device", "Device", { kind: "device" }];
const ATTRIBUTE = ["attribute", "Attribute", { hint: "Its name, such as temperature." }];
const LIMIT = ["limit", "Highest good value", { type: "number" }];
const ADDRESS = ["address", "Mail to", { type: "email" }];
const TAG = ["tag", "Tag of the devices", { placeholder: "site/north", hint: "key/value; key/ for any value." }];
const MINUTES = ["minutes", "Minutes of silence", { type: "number" }];
const COMMAND = ["command", "Name of the command", {}];

// By key: [what it does, its questions, the triggers and nodes of the answers].
const TEMPLATES = {
  highMail: ["Send a mail when a value is too high", [DEVICE, ATTRIBUTE, LIMIT, ADDRESS], (given) => [
    [state(one(given, "device", "device"), "rises")],
    [rises(given.attribute, given.limit, "mail"), mail("mail", given.address, `{{deviceName}}: ${given.attribute} is too high`, told(given.attribute))]]],
  highEvent: ["Create an event when a value is too high", [DEVICE, ATTRIBUTE, LIMIT], (given) => [
    [state(one(given, "device", "device"), "rises")],
    [rises(given.attribute, given.limit, "event"), node("event", "CreateEventNode", "Create the event", {
      dataMethod: "individualFields", levelTemplate: "warning", stateTemplate: "new", subjectTemplate: `${given.attribute} is too high`, messageTemplate: told(given.attribute), deviceIdTemplate: "{{triggerId}}" })]]],
  highCommand: ["Send a command when a value is too high", [DEVICE, ATTRIBUTE, LIMIT, COMMAND], (given) => {
    const device = one(given, "device", "device");
    return [[state(device, "rises")], [rises(given.attribute, given.limit, "command"), node("command", "DeviceSendCommandNode", "Send the command", { nameTemplate: given.command, sendToDeviceIds: [device] })]];
  }],
  silentMail: ["Send a mail when a device is silent", [TAG, MINUTES, ADDRESS], (given) => [
    [{ type: "deviceTagInactivity", key: given.tag, config: { seconds: given.minutes * 60 }, meta: { category: "trigger" }, outputIds: [["mail"]] }],
    [mail("mail", given.address, "{{deviceName}} is silent", `{{deviceName}} has reported nothing for ${given.minutes} minutes; its last report came at {{data.lastActivity}}.`)]]],
  eventMail: ["Send a mail for each critical event", [ADDRESS], (given) => [
    [{ type: "event", key: "critical", config: { new: true, acknowledged: false, resolved: false }, meta: { category: "trigger" }, outputIds: [["mail"]] }],
    [mail("mail", given.address, "{{data.subject}}", "{{data.message}}")]]],
  failedMail: ["Send a mail when another workflow fails", [ADDRESS], (given) => [
    [{ type: "flowError", config: { scope: "cloud" }, meta: { category: "trigger" }, outputIds: [["mail"]] }],
    [mail("mail", given.address, "A workflow has failed", "{{data.errorInfo.error.message}}")]]],
  timedCommand: ["Send a command every day", [DEVICE, COMMAND, ["hour", "Hour of the day (0 to 23)", { type: "number" }]], (given) => [
    [{ type: "timer", config: { cron: `0 ${given.hour} * * *`, tz: Intl.DateTimeFormat().resolvedOptions().timeZone }, meta: { category: "trigger" }, outputIds: [["command"]] }],
    [node("command", "DeviceSendCommandNode", "Send the command", { nameTemplate: given.command, sendToDeviceIds: [one(given, "device", "device")] })]]],
  toTable: ["Keep values in a data table", [DEVICE, ATTRIBUTE, ["table", "Data table", { kind: "table" }], ["column", "Column", { hint: "Its name in the data table." }]], (given) => [
    [state(one(given, "device", "device"), "row")],
    [node("row", "DataTableInsertRowNode", "Add a row", {
      dataTableIdTemplate: one(given, "table", "data table"), dataMethod: "individualFields", rowFields: [{ columnTemplate: given.column, valueTemplate: `{{data.${given.attribute}}}` }] }, [], "data")]]],
  toUrl: ["Send states to a URL", [DEVICE, ["url", "URL", { type: "url" }]], (given) => [
    [state(one(given, "device", "device"), "send")],
    [node("send", "HttpNode", "Send the state", { method: "POST", uriTemplate: given.url, bodyType: "jsonTemplate", bodyTemplate: "{{jsonEncode data}}", responsePath: "working.answer" })]]],
  fromWebhook: ["Report what a webhook receives as the state of a device", [["webhook", "Webhook", { kind: "webhook" }], DEVICE], (given) => [
    [{ type: "webhook", key: one(given, "webhook", "webhook"), config: {}, meta: { category: "trigger" }, outputIds: [["report"]] }],
    [node("report", "DeviceChangeStateNode", "Report the state", { deviceId: one(given, "device", "device"), attrDataMethod: "payloadPath", attrPayloadPath: "data.body" })]]],
};
const LISTS = { device: "devices", table: "data-tables", webhook: "webhooks" };

// The choice of a template, and the questions of the one that is chosen, as fields of a form.
export function templateFields(app) {
  const choice = { name: "template", label: "Begin with", type: "select", options: [["", "an empty workflow"], ...Object.entries(TEMPLATES).map(([key, [text]]) => [key, text])] };
  const asked = new Map(); // name -> {field, of: the templates that ask it}
  for (const [key, [, questions]] of Object.entries(TEMPLATES)) {
    for (const [name, label, { kind, ...more }] of questions) {
      if (!asked.has(name)) asked.set(name, { field: { name, label, required: true, ...more, ...(kind ? { type: "records", single: true, source: path("applications", app, LISTS[kind]) } : {}) }, of: new Set() });
      asked.get(name).of.add(key);
    }
  }
  return [choice, ...[...asked.values()].map(({ field, of }) => ({ ...field, show: ({ template }) => of.has(template) }))];
}

// The triggers and nodes that the answers make; null without a template. Throws an error with a sentence.
export function fromTemplate({ template, ...given }) {
  if (!template) return null;
  const [triggers, nodes] = TEMPLATES[template][2](given);
  return { triggers, nodes };
}
