// Changes of a definition as the picture makes them: each takes a definition and gives a new one, and leaves the old one
// and everything that it does not change as they were. `key` is that of a part, as in partsOf.

import { wordsOf } from "../../lib/format.js";
import { leadsOn, mainOutput, outputsOf, partsOf } from "./shape.js";

const ID_MAX = 48; // the length of an id that an output may name
const LETTERS = "abcdefghijkmnpqrstuvwxyz23456789";

export const partOf = (definition, key) => partsOf(definition).find((part) => part.key === key);

// The triggers and nodes with `change(source, part)` in the place of the members of the parts with these keys; what
// becomes null is left out.
function mapped(definition, keys, change) {
  const changed = new Map();
  for (const part of partsOf(definition)) {
    if (!keys.includes(part.key)) continue;
    for (const member of part.members) changed.set(member, change(member, part));
  }
  const list = (sources) => sources.map((each) => (changed.has(each) ? changed.get(each) : each)).filter(Boolean);
  const result = { ...definition };
  for (const name of ["triggers", "nodes"]) if (definition[name]) result[name] = list(definition[name]);
  return result;
}

// The same with `change(ids)` in the place of the ids of each output of each part.
function withOutputs(definition, change) {
  const list = (sources) => sources.map((each) => {
    if (!each.outputIds) return each;
    const outputIds = each.outputIds.map((ids) => change(ids));
    return outputIds.some((ids, at) => ids !== each.outputIds[at]) ? { ...each, outputIds } : each;
  });
  const result = { ...definition };
  for (const name of ["triggers", "nodes"]) if (definition[name]) result[name] = list(definition[name]);
  return result;
}

// An id that no part has, and that says the type. Ids of parts that were deleted do not come back, because what some
// nodes keep between runs is kept by their id.
export function newId(definition, type) {
  const used = new Set([...(definition.nodes || []).map((node) => node.id), ...(definition.triggers || []).flatMap((each) => [each.key, each.meta?.id, each.meta?.uiId])]);
  const word = wordsOf(type.replace(/Node$/, "")).toLowerCase().replace(/[^a-z0-9]+/g, "-").slice(0, ID_MAX - 8);
  for (;;) {
    const random = crypto.getRandomValues(new Uint8Array(5));
    const id = `${word}-${Array.from(random, (byte) => LETTERS[byte % LETTERS.length]).join("")}`;
    if (!used.has(id)) return id;
  }
}

// Add a part: {definition, key}. A trigger has no id of its own; its key is its place.
export function added(definition, kind, source) {
  const name = kind === "trigger" ? "triggers" : "nodes";
  const list = [...(definition[name] || []), source];
  return { definition: { ...definition, [name]: list }, key: kind === "trigger" ? `@${list.length - 1}` : source.id };
}

// Remove a part with the lines from it and to it.
export function removed(definition, key) {
  const part = partOf(definition, key);
  if (!part) return definition;
  const result = mapped(definition, [key], () => null);
  const id = part.kind === "node" && part.source.id;
  return id ? withOutputs(result, (ids) => (ids.includes(id) ? ids.filter((each) => each !== id) : ids)) : result;
}

// A copy of a part, without the lines to it; those from it are kept: {definition, key}.
export function duplicated(definition, key, place) {
  const part = partOf(definition, key);
  const copy = structuredClone(part.source);
  if (part.kind === "node") copy.id = newId(definition, part.type);
  if (part.kind === "trigger") {
    const id = newId(definition, part.type);
    if (copy.meta?.uiId) copy.meta.uiId = id;
    if (copy.meta?.id) copy.meta.id = id;
    if (part.type === "virtualButton" && copy.key) copy.key = id;
    const outputs = part.to.map((ids) => [...ids]);
    if (outputs.length) copy.outputIds = outputs;
  }
  if (place) copy.meta = { ...copy.meta, x: place.x, y: place.y };
  return added(definition, part.kind, copy);
}

// Why a line cannot be drawn between parts, as a sentence; "" if it can.
export function lineProblem(parts, from, output, to) {
  const source = parts.find((part) => part.key === from), target = parts.find((part) => part.key === to);
  if (!source || !target) return "There is no such part.";
  if (target.kind === "trigger") return "No line leads to a trigger.";
  if (from === to) return "A part cannot lead to itself.";
  if (target.source.id?.length > ID_MAX) return `The id of ${target.label} has more than ${ID_MAX} characters; give it a shorter one.`;
  if (source.to[output]?.includes(to)) return "There is such a line already.";
  return "";
}

// Give a node an id if it has none: {definition, id}.
function withId(definition, key) {
  const { source, type } = partOf(definition, key);
  if (source.id) return { definition, id: source.id };
  const id = newId(definition, type);
  return { definition: mapped(definition, [key], (node) => ({ ...node, id })), id };
}

// Draw a line: {definition, to}. A node that has no id gets one, so `to` may be another key than before.
export function connected(definition, from, output, to) {
  const { definition: named, id } = withId(definition, to);
  // A trigger of several members leads on by the first one; see partsOf.
  let first = true;
  const result = mapped(named, [from], (source) => {
    if (!first) return source;
    first = false;
    const outputIds = [...(source.outputIds || [])];
    while (outputIds.length <= output) outputIds.push([]);
    outputIds[output] = [...outputIds[output], id];
    return { ...source, outputIds };
  });
  return { definition: result, to: id };
}

export const disconnected = (definition, from, output, to) => led(definition, { from, output, to }, (ids) => ids.filter((each) => each !== to));

// The same with `change(ids)` in the place of the ids of the output from which a line comes.
function led(definition, { from, output, to }, change) {
  return mapped(definition, [from], (source) => {
    if (!source.outputIds?.[output]?.includes(to)) return source;
    return { ...source, outputIds: source.outputIds.map((ids, at) => (at === output ? change(ids) : ids)) };
  });
}

// Whether a part can be put into lines: it has none yet, and can be between two others.
export const fitsIntoLines = (part, edges) =>
  part.kind === "node" && leadsOn(part) && !(part.source.id?.length > ID_MAX) && !edges.some(({ from, to }) => from === part.key || to === part.key);

// Put a part into a line: the line leads to it, and its main output to where the line led: {definition, key}.
export function inserted(definition, line, key) {
  const { definition: named, id } = withId(definition, key);
  const before = led(named, line, (ids) => ids.map((each) => (each === line.to ? id : each)));
  return { definition: connected(before, id, mainOutput(partOf(before, id)), line.to).definition, key: id };
}

// Write places into the parts: key -> {x, y}, the centres of boxes.
export function placed(definition, places) {
  const whole = (value) => Math.round(value);
  return mapped(definition, [...places.keys()], (source, part) => {
    const { x, y } = places.get(part.key);
    return { ...source, meta: { ...source.meta, x: whole(x), y: whole(y) } };
  });
}

// Why a node cannot have this id, as a sentence; "" if it can.
export function idProblem(definition, key, id) {
  if (!id) return "id: is empty; lines name nodes by it.";
  if (id.length > ID_MAX) return `id: has ${id.length} characters; at most ${ID_MAX} are possible.`;
  if ((definition.nodes || []).some((node, at) => node.id === id && (node.id || `#${at}`) !== key)) return `id: another node is ${id}; give each its own.`;
  return "";
}

// Give a node another id, in all lines that lead to it as well.
export function renamed(definition, key, id) {
  const before = partOf(definition, key).source.id;
  const result = mapped(definition, [key], (node) => ({ ...node, id }));
  return before ? withOutputs(result, (ids) => (ids.includes(before) ? ids.map((each) => (each === before ? id : each)) : ids)) : result;
}

// Set a field of a part by the path to it, such as ["config", "message"]; undefined removes it. Of a trigger of several
// members, `meta` changes in all and everything else in the member `at`.
export function withField(definition, key, path, value, at = 0) {
  const set = (source, [name, ...rest]) => {
    const inner = rest.length ? set(source?.[name] || {}, rest) : value;
    const { [name]: _, ...others } = source || {};
    return inner === undefined ? others : { ...source, [name]: inner };
  };
  return mapped(definition, [key], (source, part) => (path[0] === "meta" || source === part.members[at] ? set(source, path) : source));
}

// Put the rows of a list of a node into another order: `places` are those that they have now, null is a new row, `blank`,
// and what is not named is removed. Output 0 of a switch is the default and the next ones are its cases: the lines of a
// case go with it, and those of no case are not given to a new one.
export function reordered(definition, key, name, places, blank) {
  return mapped(definition, [key], (node) => {
    const { [name]: given, ...others } = node.config || {};
    const rows = given || [];
    const list = places.map((at) => (at === null ? blank : rows[at]));
    const changed = { ...node, config: list.length ? { ...node.config, [name]: list } : others };
    if (node.type !== "SwitchNode" || name !== "cases" || !node.outputIds?.length) return changed;
    const [usual, ...cases] = node.outputIds;
    const outputIds = [usual, ...places.map((at) => cases[at] || []), ...cases.slice(rows.length)];
    while (outputIds.length > node.outputIds.length && !outputIds.at(-1).length) outputIds.pop();
    return { ...changed, outputIds };
  });
}

// The output that a click connects: of those that lead nowhere the main one, else the first; undefined if there is none.
export function freeOutput(part) {
  const free = outputsOf(part).map(({ output }) => output).filter((output) => !part.to[output]?.length);
  return free.includes(mainOutput(part)) ? mainOutput(part) : free[0];
}
