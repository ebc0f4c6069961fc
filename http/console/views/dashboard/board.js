// The blocks of a dashboard in its grid, with their data, which are read again at the rate of the dashboard.

import { useData } from "../../lib/hooks.js";
import { html, useEffect } from "../../lib/ui.js";
import { Fresh, Problem, Time } from "../../parts/basics.js";
import { Block } from "./block.js";
import { columnsOf, placed } from "./grid.js";

const REFRESH_S = 60;
// About as wide is a dashboard on a usual screen.
export const WIDTH_PX = 980;

// load(signal): the data. body: what it depends on. fixed: a moment of the past, which is not read again.
// changed(): the dashboard must be read again; app: rows link to its records. These are optional.
export function Board({ dashboard, body, load, fixed, changed, app }) {
  const every = fixed ? 0 : 1000 * (dashboard.refreshRate || REFRESH_S);
  const data = useData(load, [dashboard.dashboardId, dashboard.lastUpdated, JSON.stringify(body)], { every });
  const answer = data.value;
  const stale = Boolean(answer && answer.lastUpdated !== dashboard.lastUpdated);
  useEffect(() => { if (stale && !data.loading) changed?.(); }, [stale, data.loading]);
  const shown = new Map((stale ? [] : answer?.blocks || []).map((each) => [each.position, each]));
  const places = placed(dashboard.blocks);
  const columns = columnsOf(places);
  // Readers of a page come to the blocks from above to below.
  const inOrder = places.map((place, position) => ({ ...place, position })).sort((a, b) => a.y - b.y || a.x - b.x);
  return html`<div class="board-state">
      <button class="small" onClick=${data.reload} disabled=${data.loading}>Read again</button>
      ${!fixed && html`<${Fresh} data=${data} />`}
      ${answer && html`<span class="quiet">${fixed ? "as of" : "read"} <${Time} at=${answer.time} age=${!fixed} /></span>`}
      ${!fixed && html`<span class="quiet">every ${every / 1000} s</span>`}
    </div>
    ${data.error && (fixed || !answer) && html`<${Problem} error=${data.error} retry=${data.reload} />`}
    <div class="board" style=${{ gridTemplateColumns: `repeat(${columns}, minmax(0, 1fr))` }}>
      ${inOrder.map(({ position, x, y, width, height }) => html`<${Block} key=${position}
        block=${dashboard.blocks[position]} data=${shown.get(position)} failed=${data.error} rows=${height} px=${(WIDTH_PX * width) / columns} app=${app}
        place=${{ gridColumn: `${x + 1} / span ${width}`, gridRow: `${y + 1} / span ${height}` }} />`)}
    </div>`;
}
