// The verdict on an application in a word and a sentence, and the reasons, the worst first, each with where to look.

import { count, plural } from "../../lib/format.js";
import { link } from "../../lib/router.js";
import { html } from "../../lib/ui.js";
import { HEALTH } from "../../parts/health.js";
import { Mark } from "../../parts/icon.js";

// By the kind of a reason: the page that shows more, and that of one of its culprits. Refusals are listed on this page.
const PLACES = {
  silentDevices: [["devices", { show: "silent" }], (id) => ["devices", id]],
  neverSeenDevices: [["devices", { show: "neverSeen" }], (id) => ["devices", id]],
  openEvents: [["events", { state: "open" }], (id) => ["events", id]],
  failedRuns: [["workflows"], (id) => ["workflows", id, "errors"]],
  integrationsDown: [["integrations"], (id) => ["integrations", id]],
  failedJobs: [["jobs"]],
};

export function Verdict({ app, health }) {
  const [tone, word] = HEALTH[health.verdict];
  const ill = health.reasons.filter((each) => each.level !== "info").length;
  const sentence = ill ? `${plural(ill, "thing")} ${ill === 1 ? "needs" : "need"} attention.` : health.message;
  return html`<section class="verdict ${tone}" aria-label="Health">
    <h2><${Mark} tone=${tone} />${word}<span class="sentence" role="status">${sentence}</span></h2>
    ${health.reasons.length > 0 && html`<ul>${health.reasons.map((each) => html`<${Reason} app=${app} reason=${each} />`)}</ul>`}
  </section>`;
}

function Reason({ app, reason }) {
  const [page, ofItem] = PLACES[reason.kind] || [];
  const items = reason.items || [];
  const more = reason.number - items.length;
  const named = items.map((each, at) => {
    const name = each.name || each.id;
    const text = each.number > 1 ? `${name} (${count(each.number)})` : name;
    return html`${at > 0 && ", "}${ofItem ? html`<a href=${link("/applications", app, ...ofItem(each.id))}>${text}</a>` : text}`;
  });
  return html`<li><span title=${HEALTH[reason.level][1]}><${Mark} tone=${HEALTH[reason.level][0]} /><span class="hidden-label">${HEALTH[reason.level][1]}: </span></span>
    <p>${page ? html`<a href=${link("/applications", app, ...page)}>${reason.message}</a>` : reason.message}
      ${items.length > 0 && html` <span class="names">${named}${["silentDevices", "neverSeenDevices", "openEvents"].includes(reason.kind) && more > 0 && ` and ${count(more)} more`}</span>`}</p></li>`;
}
