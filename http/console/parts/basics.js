// Small components that most views use.

import { applicationName, currentApplication } from "../lib/application.js";
import { exactJson } from "../lib/exact.js";
import { duration, exactTime, shortTime, tagText } from "../lib/format.js";
import { link } from "../lib/router.js";
import { createContext, html, signal, useContext, useEffect, useRef, useState } from "../lib/ui.js";
import { useTitle } from "../lib/hooks.js";

const PROBLEMS_MAX = 20;

// The time now in ms, for ages. It changes once a second while the tab is seen.
export const now = signal(Date.now());
setInterval(() => document.hidden || (now.value = Date.now()), 1000);

// {due}: whether the view that was come to has yet to give the focus to its heading.
export const Arrival = createContext({ due: false });
let headed = false; // a heading was shown before, so this is not the page with which the console was opened

// The focus goes to the heading of a view that was come to: screen readers read it, and Tab goes on from there. They read
// it again when its title comes with the data. The focus is not taken from a field.
function useHeading(title) {
  const heading = useRef(null);
  const arrival = useContext(Arrival);
  useEffect(() => {
    const { activeElement } = document;
    const again = activeElement === heading.current;
    const inField = activeElement?.matches("input, select, textarea, [contenteditable]");
    if (again) heading.current.blur();
    if (again || (arrival.due && headed && !inField)) heading.current.focus({ preventScroll: true });
    arrival.due = false;
    headed = true;
  }, [title]);
  return heading;
}

// The way to a page, from the application or the console on. It is shown when the name is there, which would move it.
function way(trail) {
  const app = currentApplication();
  if (!app) return [["Trunkline", link("/")], ...trail];
  const name = applicationName();
  return name === undefined ? [] : [[name || "Application", link("/applications", app)], ...trail];
}

// A page: its title, the way to it as [[text, address], ...], a sentence about it, and its buttons. `of`: data of useData that
// the head depends on. Until they are there, what is below the head is loaded but not seen, because the head would move it.
// `tab`: the title of the browser's tab, where it says more than the heading.
export function Page({ title, tab = title, trail = [], lead, actions, of, children }) {
  useTitle(tab, applicationName());
  const heading = useHeading(title);
  const waiting = of && of.value === undefined && !of.error;
  return html`
    <nav class="trail" aria-label="Breadcrumb">
      ${way(trail).map(([text, address]) => html`<a href=${address}>${text}</a><span aria-hidden="true">/</span>`)}
    </nav>
    <div class="page-head">
      <div>
        <h1 ref=${heading} tabindex="-1">${title}</h1>
        ${lead && html`<p class="lead">${lead}</p>`}
      </div>
      ${actions && html`<div class="actions">${actions}</div>`}
    </div>
    <div class=${waiting ? "stack waiting" : "stack"}>${children}</div>`;
}

// A box with a title. `flush` has no padding, for tables.
export function Card({ title, actions, flush, children, ...rest }) {
  return html`<section class=${flush ? "card flush" : "card"} ...${rest}>
    ${(title || actions) && html`<div class=${flush ? "spread filters" : "spread"}><h2>${title}</h2>${actions && html`<div class="row">${actions}</div>`}</div>`}
    ${children}
  </section>`;
}

// A figure with its name. tone: "good", "warn", "bad" or none. With `to` it is a link.
export function Tile({ label, value, detail, tone = "", to }) {
  const inside = html`<span class="label">${label}</span><span class="figure">${value}</span>
    ${detail !== undefined && html`<span class="detail">${detail}</span>`}`;
  return to ? html`<a class="tile ${tone}" href=${to}>${inside}</a>` : html`<div class="tile ${tone}">${inside}</div>`;
}

export const Badge = ({ tone = "", children }) => html`<span class="badge ${tone}">${children}</span>`;

// An error in the server's own sentence, with a button that tries again.
export function Problem({ error, retry }) {
  if (!error) return null;
  const again = retry && html` <button class="small" onClick=${retry}>Try again</button>`;
  const parts = error.problems?.length > 0 && html`<ul>${error.problems.slice(0, PROBLEMS_MAX).map((each) => html`<li>${each.type} ${each.name}: ${each.message}</li>`)}</ul>`;
  return html`<div class="problem" role="alert">${error.message}${again}${parts}</div>`;
}

export const Notice = ({ tone = "", children }) => html`<div class="notice ${tone}">${children}</div>`;

// A time: short, in the local zone, with the exact one on hover. `age`: as "5 min ago", kept up to date.
export function Time({ at, age = false }) {
  if (at === undefined || at === null || at === "") return html`<span class="quiet">never</span>`;
  const time = new Date(at);
  const text = age ? ageText(now.value - time.getTime()) : shortTime(time);
  return html`<time class="nowrap" dateTime=${time.toISOString()} title=${exactTime(time)}>${text}</time>`;
}

function ageText(ms) {
  if (ms < -1500) return `in ${duration(-ms)}`;
  return ms < 1500 ? "just now" : `${duration(Math.floor(ms / 1000) * 1000)} ago`;
}

// Names and values: rows are [name, value]; rows whose value is undefined or null are left out.
export function Facts({ rows }) {
  const shown = rows.filter(([, value]) => value !== undefined && value !== null);
  return html`<dl class="facts">${shown.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;
}

// Tabs are views with addresses of their own: items are [key, text, address].
export function Tabs({ items, current, label = "Sections" }) {
  return html`<nav class="tabs" aria-label=${label}>
    ${items.map(([key, text, address]) => html`<a href=${address} aria-current=${key === current ? "page" : undefined}>${text}</a>`)}
  </nav>`;
}

// The state of a stream from useStream: live, or stale since when and why.
export function Live({ stream }) {
  if (stream.state === "opening") return html`<span class="live">connecting</span>`;
  if (stream.state === "live") return html`<span class="live is-live">live</span>`;
  const why = stream.error ? `: ${stream.error.message}` : "";
  return html`<span class="live is-stale" role="status">stale since <${Time} at=${stream.since} />${why}</span>`;
}

// The same for data that useData repeats: stale when the last load failed.
export function Fresh({ data }) {
  if (data.error) {
    return html`<span class="live is-stale" role="status">stale since ${data.at ? html`<${Time} at=${data.at} />` : "the start"}: ${data.error.message}</span>`;
  }
  return html`<span class="live ${data.at ? "is-live" : ""}">${data.at ? "live" : "loading"}</span>`;
}

// Tags of a device, or filters of tags: [{key, value}]
export function Tags({ tags }) {
  return html`<span class="row">${(tags || []).map((tag) => html`<span class="tag">${tagText(tag)}</span>`)}</span>`;
}

// A page that is served without TLS from another machine has no clipboard, or may not use it; there the old way still works.
async function copyText(text) {
  const written = await navigator.clipboard?.writeText(text).then(() => true, () => false);
  if (written) return;
  const before = document.activeElement;
  const field = document.createElement("textarea");
  field.value = text;
  (document.querySelector("dialog[open]") || document.body).append(field);
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  before?.focus();
  if (!copied) throw new Error("The browser did not copy the text.");
}

// A button that copies a text.
export function Copy({ text, label = "Copy" }) {
  const [told, setTold] = useState("");
  useEffect(() => {
    const timer = told && setTimeout(() => setTold(""), 2000);
    return () => clearTimeout(timer);
  }, [told]);
  const copy = () => copyText(text).then(() => setTold("Copied"), () => setTold("Not copied"));
  return html`<button class="small" onClick=${copy}>${told || label}</button>`;
}

export const Snippet = ({ text, label }) =>
  html`<figure class="snippet" aria-label=${label}><pre tabindex="0">${text}</pre><${Copy} text=${text} /></figure>`;

// What a list shows when it has nothing: one main button with what to do next, and the same as calls, folded away. What
// it is for is said here if the head of the page does not.
// `call`: {method, path, body}, shown for curl and for Python; $TOKEN is a token of the reader.
export function Empty({ title, children, call }) {
  return html`<div class="empty">
    <h2>${title}</h2>
    ${children}
    ${call && html`<details><summary>The same by a program</summary><div class="stack"><${Calls} ...${call} /></div></details>`}
  </div>`;
}

// A text in single quotation marks, as a shell reads it.
export const shellText = (text) => `'${text.replaceAll("'", "'\\''")}'`;

// A call of the API to copy, for curl and for Python.
export function Calls({ method = "GET", path, body }) {
  const url = location.origin + path;
  const json = body === undefined ? "" : exactJson(body);
  const curl = `curl -s -X ${method} '${url}' -H "Authorization: Bearer $TOKEN"${json && ` \\\n  -H 'Content-Type: application/json' -d ${shellText(json)}`}`;
  const python = [
    "import json, os, urllib.request",
    "",
    "call = urllib.request.Request(",
    `    ${JSON.stringify(url)}, method=${JSON.stringify(method)},`,
    `    headers={"Authorization": "Bearer " + os.environ["TOKEN"]${json && ', "Content-Type": "application/json"'}},`,
    ...(json ? [`    data=json.dumps(${pythonText(body)}).encode(),`] : []),
    ")",
    "print(urllib.request.urlopen(call).read().decode())",
  ].join("\n");
  return html`<p class="quiet">Set <code>TOKEN</code> to an API token, such as one of <a href=${link("/account", "tokens")}>your account</a>.</p>
    <${Snippet} text=${curl} label="With curl" /><${Snippet} text=${python} label="With Python" />`;
}

// A JSON value as Python writes it.
export function pythonText(value) {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(pythonText).join(", ")}]`;
  if (typeof value !== "object") return exactJson(value);
  return `{${Object.entries(value).map(([key, each]) => `${JSON.stringify(key)}: ${pythonText(each)}`).join(", ")}}`;
}

// The shape of what is loaded, until it is there.
export const Shape = ({ lines = 6 }) => html`<div class="shape" role="status"><span class="hidden-label">Loading.</span>${Array.from({ length: lines }, () => html`<i />`)}</div>`;

// Waits for data of useData: its error, nothing yet, or what `children(value)` makes of it.
export function Loaded({ data, children }) {
  if (data.value === undefined) {
    return data.error ? html`<${Problem} error=${data.error} retry=${data.reload} />` : html`<${Shape} />`;
  }
  return html`${data.error && html`<${Problem} error=${data.error} retry=${data.reload} />`}${children(data.value)}`;
}
