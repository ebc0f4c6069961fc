// Replies of endpoints and versions in forms: a page, or a redirection. A reply {type, value, statusCode} is three fields.

const REDIRECT = "redirect";

// The fields of the reply `name`.
export function replyFields(name, label, pages) {
  const to = `${name}To`;
  return [
    { name: to, label, type: "select", blank: "", options: [["", "none"], ...pages.map((each) => [each.id, `page ${each.name}`]), [REDIRECT, "a redirection"]] },
    { name: `${name}Address`, label: "Address", blank: "", placeholder: "/log-in", show: (values) => values[to] === REDIRECT },
    { name: `${name}Status`, label: "Status", type: "number", blank: null, hint: "Without it, the usual one", show: (values) => Boolean(values[to]) },
  ];
}

// The values of these fields for a record.
export function replyInitial(name, record) {
  const reply = record[name];
  if (!reply) return {};
  const isPage = reply.type === "page";
  return { [`${name}To`]: isPage ? reply.value : REDIRECT, [`${name}Address`]: isPage ? "" : reply.value, [`${name}Status`]: reply.statusCode };
}

// Replace the values of these fields in what a form gave by the reply; nothing if none of them was changed.
export function takeReply(name, values, record = {}) {
  const names = ["To", "Address", "Status"].map((each) => name + each);
  if (!names.some((each) => each in values)) return values;
  const now = { ...replyInitial(name, record), ...values };
  const [to, address, status] = names.map((each) => now[each]);
  const rest = Object.fromEntries(Object.entries(values).filter(([each]) => !names.includes(each)));
  if (!to) return record[name] ? { ...rest, [name]: null } : rest;
  const reply = to === REDIRECT ? { type: REDIRECT, value: address || "" } : { type: "page", value: to };
  return { ...rest, [name]: status ? { ...reply, statusCode: status } : reply };
}

// A reply as a text.
export function replyText(reply, pages = []) {
  if (!reply) return null;
  const status = reply.statusCode ? ` with ${reply.statusCode}` : "";
  if (reply.type === REDIRECT) return `redirection to ${reply.value}${status}`;
  return `page ${pages.find((each) => each.id === reply.value)?.name || reply.value}${status}`;
}
