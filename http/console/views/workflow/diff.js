// The difference of two texts by lines.

import { plural } from "../../lib/format.js";
import { html, useMemo } from "../../lib/ui.js";

const AROUND = 3;
const WORK_MAX = 6_000_000;

// [[kind, line], ...] with the kinds " ", "+" and "-". The longest common sequence of lines stays.
export function difference(before, after) {
  const old = before.split("\n"), now = after.split("\n");
  let start = 0, end = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start += 1;
  while (end < old.length - start && end < now.length - start && old.at(-1 - end) === now.at(-1 - end)) end += 1;
  const left = old.slice(start, old.length - end), right = now.slice(start, now.length - end);
  return [
    ...old.slice(0, start).map((line) => [" ", line]),
    ...middle(left, right),
    ...old.slice(old.length - end).map((line) => [" ", line]),
  ];
}

function middle(left, right) {
  const width = right.length + 1;
  if (left.length * right.length > WORK_MAX) return [...left.map((line) => ["-", line]), ...right.map((line) => ["+", line])];
  const lengths = new Uint32Array((left.length + 1) * width); // of the common sequence of what follows
  for (let one = left.length - 1; one >= 0; one--) {
    for (let other = right.length - 1; other >= 0; other--) {
      lengths[one * width + other] = left[one] === right[other] ? lengths[(one + 1) * width + other + 1] + 1
        : Math.max(lengths[(one + 1) * width + other], lengths[one * width + other + 1]);
    }
  }
  const lines = [];
  let one = 0, other = 0;
  while (one < left.length || other < right.length) {
    if (one < left.length && other < right.length && left[one] === right[other]) {
      lines.push([" ", left[one++]]);
      other += 1;
    } else if (other >= right.length || (one < left.length && lengths[(one + 1) * width + other] >= lengths[one * width + other + 1])) lines.push(["-", left[one++]]);
    else lines.push(["+", right[other++]]);
  }
  return lines;
}

export function Diff({ before, after, label }) {
  const lines = useMemo(() => difference(before, after), [before, after]);
  const changed = (kind) => lines.filter(([each]) => each === kind).length;
  if (before === after) return html`<p>They are the same.</p>`;
  const near = new Uint8Array(lines.length);
  lines.forEach(([kind], at) => kind !== " " && near.fill(1, Math.max(0, at - AROUND), at + AROUND + 1));
  const rows = [];
  for (let at = 0; at < lines.length; at++) {
    const [kind, line] = lines[at];
    if (near[at]) {
      rows.push(html`<li class=${{ "+": "added", "-": "removed" }[kind] || ""}>${kind === "-" ? "\u2212" : kind} ${line}</li>`);
      continue;
    }
    const first = at;
    while (at + 1 < lines.length && !near[at + 1]) at += 1;
    rows.push(html`<li class="left-out">${plural(at - first + 1, "equal line")}</li>`);
  }
  return html`<p role="status">${plural(changed("+"), "line")} added, ${changed("-")} removed.</p>
    <div class="flow-diff" tabindex="0" role="region" aria-label=${label}><ol>${rows}</ol></div>`;
}
