// The requests to an endpoint in the last day, by the status of their answers.

import { get } from "../../lib/api.js";
import { count } from "../../lib/format.js";
import { useData } from "../../lib/hooks.js";
import { html, useMemo } from "../../lib/ui.js";
import { Card, Loaded } from "../../parts/basics.js";
import { Chart } from "../../parts/chart.js";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

// `source`: the path of the endpoint.
export function Requests({ source, endpoint }) {
  const stats = source.slice(0, source.lastIndexOf("/")) + "/stats";
  const query = { statGrouping: "statusCode", duration: DAY_MS, resolution: HOUR_MS, endpointIdFilter: endpoint };
  const data = useData((signal) => get(stats, query, { signal }), [stats, endpoint]);
  return html`<${Card} title="Requests in the last 24 hours"><${Loaded} data=${data}>${(value) => html`<${Statuses} value=${value} />`}</${Loaded}></${Card}>`;
}

function Statuses({ value }) {
  const shown = useMemo(() => {
    const codes = Object.keys(value).filter((code) => value[code].some((each) => each.count > 0)).sort();
    // Only hours with requests are in the answer.
    const last = Math.floor(Date.now() / HOUR_MS);
    const hours = Array.from({ length: DAY_MS / HOUR_MS + 1 }, (_, at) => last - DAY_MS / HOUR_MS + at);
    const counts = codes.map((code) => {
      const at = new Map(value[code].map((each) => [Math.floor(new Date(each.time).getTime() / HOUR_MS), each.count]));
      return hours.map((hour) => at.get(hour) ?? 0);
    });
    return { codes, data: [hours.map((hour) => (hour * HOUR_MS) / 1000), ...counts], total: counts.flat().reduce((one, other) => one + other, 0) };
  }, [value]);
  if (!shown.codes.length) return html`<p class="quiet">Nobody has called it.</p>`;
  return html`<p class="quiet">${count(shown.total)} in all, an hour each step</p>
    <${Chart} label="Requests an hour by status" series=${shown.codes.map((code) => ({ name: code, step: true }))} data=${shown.data} />`;
}
