// The drafts of workflows while they are changed. Texts that are not saved outlive a change of the tab, not a reload, and
// not the login: the next person at this browser gets nothing of the last one.

import { exactJson, parseExact } from "../../lib/exact.js";
import { session } from "../../lib/session.js";
import { effect, useMemo, useState } from "../../lib/ui.js";
import { definitionOf } from "./shape.js";

const STEPS_MAX = 200;
const STEPS_CHARACTERS_MAX = 20_000_000;

// By workflow: {text, base (the text that was changed), etag (of the base), past, future (texts), merge, old (the etag of
// the record that was there when the base was saved, and is until it is loaded again)}.
const drafts = new Map();
const isChanged = (draft) => draft.text !== draft.base;
addEventListener("beforeunload", (event) => [...drafts.values()].some(isChanged) && event.preventDefault());
effect(() => { if (!session.value) drafts.clear(); });

export const forgetDraft = (flow) => drafts.delete(flow);

// The definition of a text that is not saved; null if there is none, or it is none.
export function draftOf(flow) {
  const draft = drafts.get(flow);
  return (draft && isChanged(draft) && parse(draft.text).value) || null;
}

const textOf = (definition) => exactJson(definition, 2);

// The draft of a workflow: {text, value (its definition), error (why it is none), changed, stale (it was saved by somebody
// else meanwhile), etag, version (it grows with each change that comes from elsewhere than a field of the page)}.
// write(text) and change(definition) make a step that `undo` takes back; steps with the same `merge` that follow each other
// are one. shown: the last definition that could be read.
export function useDraft(flow, record) {
  const [version, setVersion] = useState(0);
  const [, redraw] = useState(0);
  let draft = drafts.get(flow);
  const isOld = Boolean(draft) && draft.old === record._etag;
  const saved = isOld ? draft.base : textOf(definitionOf(record));
  if (!draft || (!isChanged(draft) && draft.base !== saved)) drafts.set(flow, (draft = { text: saved, base: saved, etag: record._etag, past: [], future: [] }));
  const changed = draft.text !== saved, stale = changed && draft.base !== saved;
  const parsed = useMemo(() => parse(draft.text), [draft.text]);
  const [last] = useState({});
  if (parsed.value) last.value = parsed.value;

  const write = (text, { merge } = {}) => {
    if (text === draft.text) return;
    if (!merge || merge !== draft.merge) draft.past = kept([...draft.past, draft.text]);
    Object.assign(draft, { text, merge, future: [] });
    redraw((before) => before + 1);
  };
  const step = (from, to) => {
    if (!draft[from].length) return;
    draft[to].push(draft.text);
    Object.assign(draft, { text: draft[from].pop(), merge: undefined });
    setVersion((before) => before + 1);
  };
  return {
    ...parsed, text: draft.text, changed, stale, version, shown: last.value,
    etag: stale || isOld ? draft.etag : record._etag, canUndo: draft.past.length > 0, canRedo: draft.future.length > 0,
    write, change: (definition, options) => write(textOf(definition), options),
    undo: () => step("past", "future"), redo: () => step("future", "past"),
    undoAll: () => {
      write(saved);
      Object.assign(draft, { base: saved, etag: record._etag });
      setVersion((before) => before + 1);
    },
    // The server has saved the text `sent`, and shows it as in `answer`. What was changed since then stays a change.
    isSaved: (answer, sent) => {
      const text = textOf(definitionOf(answer));
      const isNew = draft.text === sent && text !== sent;
      Object.assign(draft, { base: text, etag: answer._etag, old: record._etag, merge: undefined, ...(isNew ? { text } : {}) });
      redraw((before) => before + 1); // the fields stay, so that the focus does
    },
  };
}

// The newest steps, as many as have room.
function kept(texts) {
  let characters = 0, first = texts.length;
  while (first > 0 && texts.length - first < STEPS_MAX && (characters += texts[first - 1].length) < STEPS_CHARACTERS_MAX) first -= 1;
  return texts.slice(first);
}

function parse(text) {
  try {
    const value = parseExact(text);
    const error = problemOf(value);
    return error ? { error } : { value };
  } catch (error) {
    return { error: `This is not JSON yet: ${error.message}` };
  }
}

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const isOutputs = (value) => Array.isArray(value) && value.every((ids) => Array.isArray(ids) && ids.every((id) => typeof id === "string"));

// Why a value cannot be drawn. Everything else about it, the server says.
function problemOf(value) {
  if (!isObject(value)) return "Give an object with triggers, nodes and globals.";
  for (const name of ["triggers", "nodes", "globals"]) {
    if (value[name] === undefined) continue;
    if (!Array.isArray(value[name])) return `${name} must be an array.`;
    if (name === "globals") continue;
    for (const [at, part] of value[name].entries()) {
      if (!isObject(part) || typeof part.type !== "string") return `${name}[${at}] must be an object with a text as type.`;
      for (const inner of ["config", "meta"]) if (part[inner] !== undefined && !isObject(part[inner])) return `${name}[${at}].${inner} must be an object.`;
      if (part.id !== undefined && typeof part.id !== "string") return `${name}[${at}].id must be a text.`;
      if (part.outputIds !== undefined && !isOutputs(part.outputIds)) return `${name}[${at}].outputIds must be an array of arrays of ids.`;
    }
  }
  return "";
}
