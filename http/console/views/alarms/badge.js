// How many alarms nobody has acknowledged, beside the link of the navigation. It is counted while the console is open.

import { get, path } from "../../lib/api.js";
import { count, plural } from "../../lib/format.js";
import { useData } from "../../lib/hooks.js";
import { html, useEffect } from "../../lib/ui.js";
import { tell } from "./watch.js";

const EVERY_MS = 5000;
const LISTED = 20;

export function AlarmBadge({ app }) {
  const data = useData((signal) => get(path("applications", app, "alarms"), { perPage: LISTED }, { signal }), [app], { every: EVERY_MS });
  const list = data.value;
  useEffect(() => { if (list?.applicationId === app) tell(app, list.items); }, [list]);
  if (!list?.newCount) return null;
  return html`${" "}<span class="badge bad" title=${`${plural(list.newCount, "alarm")} that nobody has acknowledged`}>${count(list.newCount)}</span>`;
}
