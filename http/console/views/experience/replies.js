// Replies of endpoints and versions in forms: a page, or a redirection. A reply {type, value, statusCode} is four fields.

import { path } from "../../lib/api.js";
import { link } from "../../lib/router.js";
import { html } from "../../lib/ui.js";
import { RecordLinks } from "../../parts/choose.js";

const PAGE = "page", REDIRECT = "redirect";
const viewsOf = (app) => path("applications", app, "experience", "views");

// The fields of the reply `name`.
export function replyFields(name, label, app) {
  const to = `${name}To`;
  return [
    { name: to, label, type: "select", blank: "", options: [["", "none"], [PAGE, "a page"], [REDIRECT, "a redirection"]] },
    { name: `${name}Page`, label: "Page", type: "records", single: true, source: viewsOf(app), query: { viewType: "page" }, blank: [], show: (values) => values[to] === PAGE },
    { name: `${name}Address`, label: "Address", blank: "", placeholder: "/log-in", show: (values) => values[to] === REDIRECT },
    { name: `${name}Status`, label: "Status", type: "number", blank: null, hint: "Without it, the usual one", show: (values) => Boolean(values[to]) },
  ];
}

// The values of these fields for a record.
export function replyInitial(name, record) {
  const reply = record[name];
  if (!reply) return {};
  const isPage = reply.type === PAGE;
  return { [`${name}To`]: reply.type, [`${name}Page`]: isPage ? [reply.value] : [], [`${name}Address`]: isPage ? "" : reply.value, [`${name}Status`]: reply.statusCode };
}

// Replace the values of these fields in what a form gave by the reply; nothing if none of them was changed.
export function takeReply(name, values, record = {}) {
  const names = ["To", "Page", "Address", "Status"].map((each) => name + each);
  if (!names.some((each) => each in values)) return values;
  const now = { ...replyInitial(name, record), ...values };
  const [to, page = [], address = "", status] = names.map((each) => now[each]);
  const rest = Object.fromEntries(Object.entries(values).filter(([each]) => !names.includes(each)));
  if (!to) return record[name] ? { ...rest, [name]: null } : rest;
  const reply = { type: to, value: to === PAGE ? page[0] : address };
  return { ...rest, [name]: status ? { ...reply, statusCode: status } : reply };
}

// The id of the page that a reply shows.
export const pageOf = (reply) => (reply?.type === PAGE ? reply.value : undefined);

// A reply as a text; `page`: the name of its page.
export function replyText(reply, page) {
  if (!reply) return null;
  return (reply.type === REDIRECT ? `redirection to ${reply.value}` : `page ${page || reply.value}`) + statusText(reply);
}

const statusText = ({ statusCode }) => (statusCode ? ` with ${statusCode}` : "");

// The same with a link to its page, null without a reply.
export function replyFact(reply, app, version) {
  const page = pageOf(reply);
  if (!page) return replyText(reply);
  return html`<span class="row">page <${RecordLinks} source=${viewsOf(app)} ids=${[page]} query=${{ version }}
    href=${(id) => link("/applications", app, "experience", "views", id, { version })} />${statusText(reply)}</span>`;
}
