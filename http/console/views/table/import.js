// The import of a CSV file: it is read in the browser, shown before anything is sent, and sent in parts. The first part
// that the server refuses ends it; what was sent before stays stored.

import { path, request } from "../../lib/api.js";
import { exactJson } from "../../lib/exact.js";
import { bytes, count, plural } from "../../lib/format.js";
import { html, useEffect, useRef, useState } from "../../lib/ui.js";
import { Card, Notice, Problem } from "../../parts/basics.js";
import { DropFiles } from "../../parts/drop.js";
import { CsvReader, readCsv, separatorOf } from "./csv.js";
import { fits, textOf, valueOf } from "./values.js";

const ROWS_AT_ONCE = 1000; // the most that one call inserts
const BYTES_AT_ONCE = 500_000; // in UTF-8, as they are sent
const PREVIEW_BYTES = 65_536;
const PREVIEW_ROWS = 8;
const TRIES = 6;
const REPEATED = [0, 429, 503]; // no answer, too early
const SEPARATORS = [[",", "comma"], [";", "semicolon"], ["\t", "tab"]];
const ENCODINGS = ["utf-8", "windows-1252", "utf-16le"];
const SERVER_FIELDS = ["id", "createdAt", "updatedAt"];
const utf8 = new TextEncoder();
const FORMULA = /^'(?=['=+\-@\t\r\n])/;

export function Import({ app, table }) {
  const [file, setFile] = useState(null);
  const [options, setOptions] = useState(null);
  const [seen, setSeen] = useState(null); // {head, records} of the first bytes
  const [error, setError] = useState(null);
  const [run, setRun] = useState(null); // {stored, records, bytes, state: "running" | "waiting" | "stopped" | "done", error}
  const abort = useRef(null);
  const key = useRef(""); // of the calls for this file
  const looks = useRef(0);
  useEffect(() => () => abort.current?.abort(), []);
  const look = async (chosen, wanted) => {
    const mine = ++looks.current;
    setError(null);
    setFile(chosen);
    setSeen(null);
    try {
      const found = await preview(chosen, wanted, table.columns);
      if (mine !== looks.current) return; // another file, or another way to read it, was chosen since
      setOptions(found.options);
      setSeen(found);
    } catch (failure) {
      if (mine !== looks.current) return;
      setOptions(wanted || { separator: ",", encoding: "utf-8", mapping: [], skip: 0, unescape: false });
      setError(failure);
    }
  };
  const choose = ([chosen]) => {
    setRun(null);
    key.current = randomName();
    look(chosen, null);
  };
  const start = async () => {
    const mine = (abort.current = new AbortController());
    setError(null);
    const tell = (state) => mine === abort.current && setRun(state);
    await importRows({ file, options, columns: table.columns, target: path("applications", app, "data-tables", table.id, "rows"), key: key.current, tell, signal: mine.signal });
  };
  const stop = () => abort.current.abort();
  const busy = run && (run.state === "running" || run.state === "waiting");
  const skipOn = () => {
    setOptions({ ...options, skip: options.skip + run.stored });
    setRun(null);
  };
  return html`<${Card} data-write title="Import a CSV file"><div class="stack">
    <p class="quiet">The first line has the names of the columns. An empty field is null, or the default of a required column; "" is an empty text.
      The file is read here and sent in parts of at most ${count(ROWS_AT_ONCE)} rows; each is stored whole or not at all.</p>
    <${DropFiles} label="Choose a CSV file" accept=".csv,.tsv,.txt,text/csv" take=${choose} disabled=${busy}>
      ${file && html`<span class="break"><b>${file.name}</b>, ${bytes(file.size)}</span>`}</${DropFiles}>
    <${Problem} error=${error} />
    ${options && html`<${Options} options=${options} read=${(changes) => look(file, { ...options, ...changes, mapping: null })} set=${(changes) => setOptions({ ...options, ...changes })} disabled=${busy} />`}
    ${seen && html`<${Preview} ...${{ seen, options, columns: table.columns, disabled: busy }} set=${(mapping) => setOptions({ ...options, mapping })} />
      <div class="row"><button data-write class="primary" disabled=${busy || run?.state === "done" || !options.mapping.some(Boolean)} onClick=${start}>Import</button>
        ${busy && html`<button onClick=${stop}>Stop</button>`}</div>`}
    ${run && html`<${Progress} ...${{ run, file, skipOn }} />`}
  </div></${Card}>`;
}

// `read(changes)` reads the file again, `set(changes)` needs not.
function Options({ options, read, set, disabled }) {
  const select = (name, label, list) => html`<label class="row">${label} <select disabled=${disabled} value=${options[name]} onChange=${(event) => read({ [name]: event.target.value })}>
    ${list.map(([value, text]) => html`<option value=${value} selected=${value === options[name]}>${text}</option>`)}</select></label>`;
  return html`<div class="row">
    ${select("separator", "Separated by", SEPARATORS)}
    ${select("encoding", "Encoding", ENCODINGS.map((each) => [each, each]))}
    <label class="row">Skip the first <input class="number skip-rows" type="number" min="0" disabled=${disabled} value=${options.skip} onInput=${(event) => set({ skip: Math.max(0, Math.trunc(Number(event.target.value)) || 0) })} /> rows</label>
    <label class="row"><input type="checkbox" disabled=${disabled} checked=${options.unescape} onChange=${(event) => set({ unescape: event.target.checked })} /> Remove the apostrophe that exports put before texts such as =1</label>
  </div>`;
}

function Preview({ seen, options, columns, set, disabled }) {
  const types = Object.fromEntries(columns.map((each) => [each.name, each.dataType]));
  const taken = options.mapping;
  const choose = (at, name) => set(taken.map((each, index) => (index === at ? name : name && each === name ? "" : each)));
  return html`<div class="table-box" tabindex="0" role="region" aria-label="Preview"><table>
    <thead><tr>${seen.head.map((name, at) => html`<th scope="col"><div class="field"><label for=${`column-${at}`}>${name || `column ${at + 1}`}</label>
      <select id=${`column-${at}`} disabled=${disabled} value=${taken[at]} onChange=${(event) => choose(at, event.target.value)}>
        <option value="" selected=${!taken[at]}>left out</option>${columns.map((each) => html`<option value=${each.name} selected=${each.name === taken[at]}>${each.name} (${each.dataType})</option>`)}
      </select></div></th>`)}</tr></thead>
    <tbody>${seen.records.slice(options.skip, options.skip + PREVIEW_ROWS).map((record) => html`<tr>${seen.head.map((name, at) => {
      const type = types[taken[at]];
      const value = valueIn(record.fields[at] ?? null, type || "string", options);
      return html`<td class=${type && !fits(type, value) ? "misfit" : type === "number" ? "number" : ""}>${value === null || !type ? html`<span class="quiet">${value === null ? "null" : value}</span>` : textOf(value)}</td>`;
    })}</tr>`)}</tbody></table></div>
    <p class="quiet">The first rows as they will be stored. Columns of the table that no column of the file is for are left to their defaults.</p>`;
}

function Progress({ run, file, skipOn }) {
  const busy = run.state === "running" || run.state === "waiting";
  const stored = `${plural(run.stored, "row")} stored`;
  if (run.state === "done") return html`<${Notice} tone="good"><span role="status">${stored}. The file is imported.</span></${Notice}>`;
  return html`<div class="stack">
    <progress aria-label="Progress of the import" max=${Math.max(1, file.size)} value=${run.bytes}></progress>
    <p role="status">${stored}${busy ? `, ${Math.floor((run.bytes / Math.max(1, file.size)) * 100)} % of the file` : ". The import has stopped; the rest of the file is not stored."}${run.state === "waiting" ? ". Waiting for the server." : ""}</p>
    ${!busy && html`<${Problem} error=${run.error} />
      <div><button data-write onClick=${skipOn}>Go on after ${plural(run.stored, "stored row")}</button></div>`}
  </div>`;
}

// The head of a file, its first records, and how it is read; `wanted` are options that were chosen already.
async function preview(file, wanted, columns) {
  const encoding = wanted?.encoding || "utf-8";
  const whole = file.size <= PREVIEW_BYTES;
  let text;
  try {
    text = new TextDecoder(encoding, { fatal: true }).decode(await file.slice(0, PREVIEW_BYTES).arrayBuffer(), { stream: !whole });
  } catch {
    throw new Error(`The file is not text in ${encoding}. Choose its encoding, or save it as UTF-8.`);
  }
  const separator = wanted?.separator || separatorOf(text);
  const reader = new CsvReader(separator);
  const records = [...reader.push(text), ...(whole ? reader.end() : [])];
  if (!records.length) throw reader.fault ?? new Error("The file has no lines.");
  const head = records.shift().fields.map((each) => (each ?? "").trim().replace(FORMULA, "")); // exports have '-x for -x
  const names = columns.map((each) => each.name);
  const options = {
    separator, encoding, skip: wanted?.skip || 0,
    unescape: wanted?.unescape ?? SERVER_FIELDS.every((each, at) => head[at] === each),
    mapping: wanted?.mapping || head.map((name, at) => (names.includes(name) && head.indexOf(name) === at ? name : "")),
  };
  return { head, records, options };
}

function valueIn(field, type, { unescape }) {
  if (field === null) return null;
  const text = unescape ? field.replace(FORMULA, "") : field;
  return type === "string" ? text : valueOf(type, text);
}

// Read the file and send its rows. Tells its state; ends with "done", or "stopped" and the error. The key of a call has
// the place of its first row, so a part whose answer was lost is not inserted again when the import goes on.
async function importRows({ file, options, columns, target, key, tell, signal }) {
  const state = { stored: 0, bytes: 0, state: "running", error: null };
  const say = (changes) => tell({ ...Object.assign(state, changes) });
  const chosen = options.mapping.map((name) => columns.find((each) => each.name === name));
  let chunk = [], size = 0, position = -1;
  const send = async (read) => {
    if (!chunk.length) return;
    const body = `[${chunk.map((each) => each.json).join(",")}]`;
    await insert(target, body, `"import-${key}-${options.skip + state.stored}"`, signal, (waiting) => say({ state: waiting ? "waiting" : "running" }));
    say({ stored: state.stored + chunk.length, bytes: read });
    chunk = [];
    size = 0;
    signal.throwIfAborted();
  };
  say({});
  try {
    for await (const { records, bytes: read } of readCsv(file, options)) {
      for (const record of records) {
        position += 1; // 0 is the head
        if (position <= options.skip) continue;
        const json = exactJson(rowOf(record, chosen, options));
        chunk.push({ json, line: record.line });
        size += utf8.encode(json).length + 1;
        if (chunk.length === ROWS_AT_ONCE || size >= BYTES_AT_ONCE) await send(read);
      }
    }
    await send(file.size);
    say({ state: "done", bytes: file.size });
  } catch (error) {
    say({ state: "stopped", error: signal.aborted ? null : { message: located(error.message, chunk) } });
  }
}

// A row of the API from a record of the file. A required column with a default takes that instead of null. A value
// beyond the columns of the head would be lost, and those before it may stand in wrong columns.
function rowOf({ line, fields }, chosen, options) {
  if (fields.slice(chosen.length).some((each) => each !== null)) {
    throw new Error(`Line ${count(line)} of the file has ${plural(fields.length, "field")}, and its first line has ${count(chosen.length)}.`);
  }
  const row = {};
  chosen.forEach((column, at) => {
    if (!column) return;
    const value = valueIn(fields[at] ?? null, column.dataType, options);
    const filled = value === null && column.constraint === "required" && column.defaultValue !== undefined && column.defaultValue !== null;
    if (!filled) row[column.name] = value;
  });
  return row;
}

// The server names a row by its place in the call; the reader knows lines of the file.
function located(message, chunk) {
  const found = /^\[(\d+)\]/.exec(message);
  const line = found && chunk[Number(found[1])]?.line;
  return line ? `Line ${count(line)} of the file: ${message}` : message;
}

// Insert rows. A call that got no answer, or that came too early, is repeated with the same key. A call that was sent is
// never given up before its answer: its rows may be stored.
async function insert(target, body, key, signal, waiting) {
  const headers = { "content-type": "application/json", "idempotency-key": key };
  for (let tried = 1; ; tried += 1) {
    try {
      await request("POST", target, { body, headers });
      return;
    } catch (error) {
      if (signal.aborted || tried === TRIES || !(REPEATED.includes(error.status) || error.type === "InWork")) throw error;
      waiting(true);
      await new Promise((done) => setTimeout(done, 1000 * (error.retryAfterS || 2 ** (tried - 1))));
      signal.throwIfAborted();
      waiting(false);
    }
  }
}

const randomName = () => [...crypto.getRandomValues(new Uint8Array(12))].map((each) => each.toString(16).padStart(2, "0")).join("");
