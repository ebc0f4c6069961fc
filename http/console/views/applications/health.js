// The health of the applications of a page of the list: whether any needs attention, and which, the worst first.

import { get } from "../../lib/api.js";
import { count, plural } from "../../lib/format.js";
import { useData } from "../../lib/hooks.js";
import { link, route } from "../../lib/router.js";
import { html } from "../../lib/ui.js";
import { HEALTH } from "../../parts/health.js";
import { Mark } from "../../parts/icon.js";

const EVERY_MS = 10_000;
const PER_PAGE = 25; // of the API; the list shows two of these pages
const PAGES = 2;
const RANKS = ["critical", "warning", "unknown", "ok"];

// The health of the applications that the list shows: {value: {items, totalCount}, ...} as useData.
export function useHealth() {
  const { query } = route.value;
  const asked = {
    perPage: PER_PAGE, sortField: query.sort || "name", sortDirection: query.direction || "asc",
    ...(query.filter ? { filterField: "name", filter: `*${query.filter}*` } : {}),
  };
  const first = (Number(query.page) || 0) * PAGES;
  const load = async (signal) => {
    const found = await get("/applications/health", { ...asked, page: first }, { signal });
    if (found.totalCount <= (first + 1) * PER_PAGE) return found;
    const { items } = await get("/applications/health", { ...asked, page: first + 1 }, { signal });
    return { ...found, items: [...found.items, ...items] };
  };
  return useData(load, [JSON.stringify([asked, first])], { every: EVERY_MS });
}

const attention = ({ verdict }) => verdict === "critical" || verdict === "warning";

// "2 of 5 applications need attention", for the title of the tab.
export function sentence(found) {
  const ill = found.items.filter(attention).length;
  const all = `${count(found.items.length)} ${found.totalCount > found.items.length ? "shown " : ""}${found.items.length === 1 ? "application" : "applications"}`;
  if (ill) return `${count(ill)} of ${all} ${ill === 1 ? "needs" : "need"} attention`;
  return found.items.some((each) => each.verdict === "ok") ? `${all}: none needs attention` : `No device of ${all} has reported yet`;
}

// The worst verdict of all, and those that need attention, with the worst reason of each.
export function Overall({ found }) {
  if (!found?.items.length) return null;
  const sorted = [...found.items].sort((one, other) => RANKS.indexOf(one.verdict) - RANKS.indexOf(other.verdict));
  const worst = sorted[0].verdict === "unknown" && sorted.some((each) => each.verdict === "ok") ? "ok" : sorted[0].verdict;
  const [tone, word] = HEALTH[worst];
  const ill = sorted.filter(attention);
  return html`<section class="verdict ${tone}" aria-label="Health of all applications">
    <h2><${Mark} tone=${tone} />${word}<span class="sentence" role="status">${sentence(found)}.</span></h2>
    ${ill.length > 0 && html`<ul>${ill.map((each) => html`<li><span title=${HEALTH[each.verdict][1]}><${Mark} tone=${HEALTH[each.verdict][0]} /><span class="hidden-label">${HEALTH[each.verdict][1]}: </span></span>
      <p><a href=${link("/applications", each.applicationId)}>${each.name}</a> ${each.message}${each.reasons.length > 1 && html` <span class="names">And ${plural(each.reasons.length - 1, "other reason")}.</span>`}</p></li>`)}</ul>`}
  </section>`;
}
