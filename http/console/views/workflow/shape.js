// What a definition of a workflow says: its parts (triggers and nodes), what they are called, and where they lead.

import { wordsOf } from "../../lib/format.js";

const NO_YES = ["false", "true"];
// The names of the outputs of nodes that have several.
const OUTPUTS = {
  BranchOnChangeNode: ["same", "changed"],
  ConditionalNode: NO_YES,
  CustomNodeExecuteNode: ["first", "second"],
  ExperienceUserAuthNode: ["refused", "valid"],
  GeofenceNode: ["outside", "inside"],
  JWTVerifyNode: ["not valid", "valid"],
  LatchNode: ["no change", "set"],
  LoopNode: ["then", "each item"],
  ThrottleNode: ["too early", "passed"],
  TimeRangeNode: ["outside", "within"],
  ValidatePayloadNode: ["not valid", "valid"],
  VerifyDeviceNode: NO_YES,
  VerifyExperienceGroupNode: NO_YES,
};
// Of those with a "no" and a "yes", what most people want to go on from is the "yes".
const FIRST_IS_MAIN = new Set(["CustomNodeExecuteNode"]);
const LOOP_BODY = 1;
const OUTPUTS_MAX = 100;
// Nodes after which a path ends.
const ENDS = new Set(["AnnotationNode", "CustomNodeCapNode", "LoopCapNode", "ThrowErrorNode"]);

// The types whose names do not say what they do. All others are told by their names.
const WORDS = {
  AnnotationNode: "note", BranchOnChangeNode: "if it has changed", ConditionalNode: "if a condition holds", CustomNodeExecuteNode: "custom node",
  DeviceChangeStateNode: "report a state", DeviceSendCommandNode: "send a command", CreateEventNode: "create an event", UpdateEventNode: "change an event", DeleteEventNode: "delete an event",
  DebugNode: "debug message", DelayNode: "wait", FileCreateNode: "create a file", FileGetNode: "read a file", GaugeNode: "aggregate an attribute", GeofenceNode: "if it is in an area",
  GetValueNode: "get a stored value", StoreValueNode: "store a value", HttpNode: "HTTP request", LatchNode: "only once until reset", LosantApiNode: "call the API",
  MutateNode: "change the payload", ObjectNode: "work with an object", ArrayNode: "work with an array", StringNode: "work with a text", RawFunctionNode: "JavaScript function",
  SendgridEmailNode: "send a mail by SendGrid", StructureEmailNode: "send a mail", ThrottleNode: "let through now and then", ThrowErrorNode: "fail", TimeRangeNode: "if it is a certain time",
  LoopNode: "for each item", LoopCapNode: "end of an item", SwitchNode: "one of several ways",
  TimeSeriesNode: "read the history of attributes", ValidatePayloadNode: "if the payload is valid", WorkflowTriggerNode: "start another workflow", VerifyDeviceNode: "if it is a device",
  deviceId: "state of a device", deviceTag: "states of devices by tag", deviceIdConnect: "a device connects", deviceTagConnect: "a device connects, by tag",
  deviceIdDisconnect: "a device disconnects", deviceTagDisconnect: "a device disconnects, by tag", deviceIdInactivity: "a device is silent", deviceTagInactivity: "a device is silent, by tag",
  deviceCreate: "a device is created", deviceCommand: "a command arrives", event: "an event is created or changes", flowError: "a workflow fails", appFile: "a file changes",
  dataTable: "rows of a data table change", direct: "called by a workflow or the API", endpoint: "request to an endpoint", webhook: "request to a webhook",
  integration: "message of an integration", mqttTopic: "message of a topic", timer: "timer",
};

// What a type is called: in words of people, else "JWTCreateNode" as "JWT create", "virtualButton" as "virtual button".
export const typeText = (type) => WORDS[type] || wordsOf(type.replace(/Node$/, ""));

// The fields of a definition that a record has: those of a version, of a workflow, or of an export of one.
export function definitionOf(record) {
  const names = ["triggers", "nodes", "globals", "minimumAgentVersion", "customNodeConfig"];
  return Object.fromEntries(names.filter((name) => record[name] !== undefined).map((name) => [name, record[name]]));
}

// The parts of a definition. `key` names a part in addresses: the id of a node, "@" and the position of a trigger.
// Triggers that an editor shows as one (the same `uiId`) are one part with all of them in `members`.
export function partsOf(definition) {
  const parts = [], byUi = new Map();
  (definition.triggers || []).forEach((trigger, at) => {
    const ui = trigger.meta?.uiId;
    const twin = ui && byUi.get(ui);
    if (twin) {
      twin.members.push(trigger);
      trigger.outputIds?.forEach((ids, output) => { twin.to[output] = [...new Set([...(twin.to[output] || []), ...ids])]; });
      return;
    }
    const part = described(trigger, `@${at}`, "trigger", `triggers[${at}]`);
    parts.push(part);
    if (ui) byUi.set(ui, part);
  });
  (definition.nodes || []).forEach((node, at) => parts.push(described(node, node.id || `#${at}`, "node", `nodes[${at}]`)));
  return parts;
}

function described(source, key, kind, place) {
  const meta = source.meta || {};
  return {
    key, kind, place, source, members: [source], type: source.type, config: source.config || {},
    label: (typeof meta.label === "string" && meta.label) || capital(typeText(source.type)),
    note: meta.description || (source.type === "AnnotationNode" ? source.config?.text || source.config?.description : ""),
    category: kind === "trigger" ? "trigger" : meta.category || "",
    x: meta.x, y: meta.y,
    to: (source.outputIds || []).map((ids) => [...ids]),
  };
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

// The lines between parts: {from, output, outputs, to, name}. `name` is that of the output, "" if there is only one.
export function edgesOf(parts) {
  const known = new Set(parts.map((part) => part.key));
  return parts.flatMap((part) => part.to.flatMap((ids, output) => ids.filter((id) => known.has(id)).map((to) => ({
    from: part.key, output, outputs: Math.max(outputCount(part), 1), to, name: outputName(part, output),
  }))));
}

function outputCount(part) {
  if (ENDS.has(part.type)) return part.to.length;
  const meta = Number(part.source.meta?.outputCount) || 1; // as an editor has saved it
  const usual = part.type === "SwitchNode" ? 1 + (Array.isArray(part.config.cases) ? part.config.cases.length : 0)
    : part.type === "CustomNodeExecuteNode" || part.kind === "trigger" ? meta : OUTPUTS[part.type]?.length || 1;
  return Math.max(part.to.length, Math.min(usual, OUTPUTS_MAX));
}

// The output by which a path usually goes on after a part.
export const mainOutput = (part) => (outputCount(part) > 1 && (part.type === "SwitchNode" || (OUTPUTS[part.type] && !FIRST_IS_MAIN.has(part.type))) ? 1 : 0);

// Whether a path can go on after a part.
export const leadsOn = (part) => !ENDS.has(part.type);

// The outputs from which lines can be drawn: [{output, name}].
export const outputsOf = (part) => Array.from({ length: outputCount(part) }, (_, output) => ({ output, name: outputName(part, output) }));

export function outputName(part, output) {
  if (part.type === "SwitchNode") return output === 0 ? "default" : String(part.config.cases?.[output - 1]?.caseTemplate || `case ${output}`);
  const names = OUTPUTS[part.type];
  if (part.type === "CustomNodeExecuteNode" && outputCount(part) < 2) return "";
  if (names?.[output]) return names[output];
  return outputCount(part) > 1 ? `output ${output}` : "";
}

// The ends of the bodies of loops: [{loop, cap, after}], each cap with the innermost loop around it. `after`: the keys of the
// parts that follow the loop.
export function loopsOf(parts, edges) {
  const next = new Map();
  for (const edge of edges) next.set(edge.from, [...(next.get(edge.from) || []), edge.to]);
  const types = new Map(parts.map((part) => [part.key, part.type]));
  const bodies = parts.filter((part) => part.type === "LoopNode").map((part) => {
    const body = new Set(), open = [...(part.to[LOOP_BODY] || [])];
    while (open.length) {
      const key = open.pop();
      if (body.has(key) || key === part.key) continue;
      body.add(key);
      open.push(...(next.get(key) || []));
    }
    return { loop: part.key, after: (part.to[0] || []).filter((key) => types.has(key)), body };
  });
  bodies.sort((one, other) => one.body.size - other.body.size);
  const pairs = [];
  for (const [key, type] of types) {
    const around = type === "LoopCapNode" && bodies.find((each) => each.body.has(key));
    if (around) pairs.push({ loop: around.loop, cap: key, after: around.after });
  }
  return pairs;
}

// What starts a trigger, in a few words.
export function triggerText(trigger) {
  const config = trigger.config || {};
  if (trigger.type === "timer") return config.cron ? `${config.cron}${config.tz ? ` ${config.tz}` : ""}` : `every ${config.seconds ?? "?"} s`;
  const silence = config.seconds === undefined ? "" : ` after ${config.seconds} s`;
  return `${trigger.key || ""}${silence}`;
}

// What a run or a dry run passed, for the graph: {visited: key -> {count, tookUs, outputs}, failed: key, trigger: key}.
export function marksOf(parts, path, error, isTrigger) {
  const visited = new Map();
  for (const step of path) {
    const seen = visited.get(step.nodeId) || { count: 0, tookUs: 0, outputs: new Set() };
    seen.count += 1;
    seen.tookUs += step.tookUs;
    seen.outputs.add(step.output);
    visited.set(step.nodeId, seen);
  }
  const failed = error?.nodeId;
  const last = visited.get(failed);
  if (last?.count === 1) last.outputs.clear(); // the output of a node that failed is 0, and was not followed
  const trigger = parts.find((part) => part.kind === "trigger" && part.members.some(isTrigger))?.key;
  return { visited, failed, trigger };
}

// Whether a run took a line. A loop has passed its body if the first node of the body was visited.
export function wasTaken(marks, edge, type) {
  if (!marks.visited.has(edge.to)) return false;
  if (edge.from === marks.trigger) return true;
  const seen = marks.visited.get(edge.from);
  return Boolean(seen) && (seen.outputs.has(edge.output) || (type === "LoopNode" && edge.output === LOOP_BODY));
}
