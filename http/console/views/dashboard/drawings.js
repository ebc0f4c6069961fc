// What the charts of blocks look like: lines over time by uPlot, everything else as elements and SVG.

import { numberText, shortTime, valueText } from "../../lib/format.js";
import { html, useMemo } from "../../lib/ui.js";
import { Chart } from "../../parts/chart.js";
import uPlot from "../../vendor/uplot.mjs";

const ROW_PX = 96;
const HEAD_PX = 84;
const LEGEND_ROW_PX = 26;
const LEGEND_ITEM_PX = 260;
const HEIGHT_MIN_PX = 120;
const COLOURS = 8;
const percent = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 1 });

// The colour that the block says if the browser knows it, else one of the console's, which fits light and dark.
function colour(line, at) {
  return line.color && CSS.supports("color", line.color) ? line.color : `var(--chart-${(at % COLOURS) + 1})`;
}

export function Graph({ chart, name, config, rows, px }) {
  if (config.displayType === "sparkline") return html`<${Sparkline} chart=${chart} name=${name} />`;
  const right = new Set((config.yAxes || []).filter((axis) => axis.position === "right").map((axis) => axis.id));
  // A segment whose values are no numbers has a line without points.
  const lines = chart.lines.filter((line) => line.points.length);
  const series = lines.map((line) => ({
    name: line.label, color: line.color, step: line.style === "step", area: line.style === "area", bars: line.style === "bar", right: right.has(line.axis),
    precision: config.precision, precisionType: config.precisionType,
  }));
  const data = useMemo(() => joined(lines), [chart]);
  const marks = chart.marks.map((mark) => ({
    from: mark.points[0][1], to: mark.style === "area" ? mark.points[1]?.[1] : undefined, color: mark.color, label: mark.label,
  }));
  const legend = config.hideLegend ? 0 : LEGEND_ROW_PX * (1 + Math.ceil(series.length / Math.max(1, Math.floor(px / LEGEND_ITEM_PX))));
  const height = Math.max(HEIGHT_MIN_PX, rows * ROW_PX - HEAD_PX - legend);
  return html`<${Chart} label=${name} ...${{ series, data, marks, height }} range=${chart.span?.map((ms) => ms / 1000)} unit=${config.unit ? ` ${config.unit}` : ""}
    low=${chart.low ?? undefined} high=${chart.high ?? undefined} legend=${!config.hideLegend} />`;
}

// The points of all lines by their times, in seconds.
function joined(lines) {
  const tables = lines.map((line) => [line.points.map(([ms]) => ms / 1000), line.points.map(([, value]) => value)]);
  return tables.length > 1 ? uPlot.join(tables) : tables[0];
}

// The course of values without axes: how they went, beside the newest.
function Sparkline({ chart, name }) {
  const [from, to] = chart.span, points = chart.lines.flatMap((line) => line.points);
  const low = Math.min(...points.map(([, y]) => y)), high = Math.max(...points.map(([, y]) => y));
  const x = (ms) => ((100 * (ms - from)) / (to - from)).toFixed(2), y = (value) => (high === low ? 15 : 28 - (26 * (value - low)) / (high - low)).toFixed(2);
  return html`<svg class="sparkline" viewBox="0 0 100 30" preserveAspectRatio="none" role="img" aria-label=${`${name}: from ${valueText(low)} to ${valueText(high)}`}>
    ${chart.lines.map((line, at) => html`<polyline style=${{ stroke: colour(line, at) }} points=${line.points.map(([ms, value]) => `${x(ms)},${y(value)}`).join(" ")} />`)}
  </svg>`;
}

const SLOT = 0.1; // percent of the width: what is shorter is not drawn

// When which value was: a row for each line, with an area in the colour of each value.
export function Timeline({ chart, name }) {
  const [from, to] = chart.span;
  const place = (ms) => (100 * (Math.min(Math.max(ms, from), to) - from)) / (to - from);
  const tint = (category) => `var(--chart-${(category % COLOURS) + 1})`;
  const rows = chart.lines.map(({ label, points }) => {
    const areas = new Map();
    let end = 0;
    points.forEach(([ms, category], at) => {
      const start = Math.max(end, place(ms)), until = at + 1 < points.length ? place(points[at + 1][0]) : 100;
      if (until - start < SLOT) return;
      areas.set(category, `${areas.get(category) || ""}M${start.toFixed(2)} 0H${until.toFixed(2)}V10H${start.toFixed(2)}Z`);
      end = until;
    });
    return { label, areas, newest: chart.categories[points.at(-1)[1]] };
  });
  return html`<div class="timeline"><ul aria-label=${name}>${rows.map(({ label, areas, newest }) => html`<li>
      <span class="break">${label}</span>
      <svg viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label=${`${label}: now ${newest}`}>${[...areas].map(([category, path]) => html`<path d=${path} style=${{ fill: tint(category) }}><title>${chart.categories[category]}</title></path>`)}</svg>
      <b class="break">${newest}</b></li>`)}</ul>
    <p class="spread quiet"><span>${shortTime(from)}</span><span>${shortTime(to)}</span></p>
    <p class="row">${chart.categories.map((text, category) => html`<span class="row key"><span class="swatch" style=${{ background: tint(category) }}></span>${text}</span>`)}</p></div>`;
}

// Horizontal bars, from zero, or between the ends that the block says.
export function Bars({ chart, name, config }) {
  const values = chart.lines.map((line) => line.points[0][1]);
  const low = chart.low ?? Math.min(0, ...values), high = chart.high ?? Math.max(0, ...values), span = high - low || 1;
  const share = (value) => (100 * (Math.min(Math.max(value, low), high) - low)) / span;
  return html`<ul class="bars" aria-label=${name}>${chart.lines.map((line, at) => {
    const zero = share(0), end = share(values[at]);
    return html`<li>
      <span class="break">${chart.categories[at]}</span>
      <span class="bar"><span style=${{ background: colour(line, at), left: `${Math.min(zero, end)}%`, width: `${Math.abs(end - zero)}%` }}></span></span>
      <span class="number">${numberText(values[at], config)}</span></li>`;
  })}</ul>`;
}

export function Pie({ chart, name }) {
  const values = chart.lines.map((line) => line.points[0][1]);
  const total = values.reduce((sum, value) => sum + value, 0);
  let before = 0;
  const sectors = chart.lines.map((line, at) => {
    const share = values[at] / total, offset = before;
    before += share;
    return { line, at, share, offset };
  });
  return html`<div class="pie">
    <svg viewBox="0 0 42 42" role="img" aria-label=${`${name}: ${sectors.map(({ at, share }) => `${chart.categories[at]} ${percent.format(share)}`).join(", ")}`}>
      ${sectors.map(({ line, at, share, offset }) => html`<circle cx="21" cy="21" r="14" pathLength="100" fill="none" stroke-width="10"
        style=${{ stroke: colour(line, at) }} stroke-dasharray=${`${100 * share} ${100 - 100 * share}`} stroke-dashoffset=${25 - 100 * offset} />`)}
    </svg>
    <ul>${sectors.map(({ line, at, share }) => html`<li><span class="swatch" style=${{ background: colour(line, at) }}></span>
      <span class="break">${chart.categories[at]}</span><span class="number">${percent.format(share)}</span></li>`)}</ul>
  </div>`;
}

const ALONG = ["tank", "thermometer", "battery"];

// A value between `low` and `high`: on a half circle, or along a bar. A mark stands where a threshold begins.
export function Gauge({ chart, name, config }) {
  const { low, high, lines: [line] } = chart;
  const value = line.points[0][1];
  const part = (number) => Math.min(1, Math.max(0, (number - low) / (high - low)));
  const marks = chart.marks.map((mark) => ({ at: part(mark.points[0][1]), color: colour(mark, 7) })).filter(({ at }) => at > 0 && at < 1);
  const label = `${name}: ${numberText(value, config)} of ${valueText(low)} to ${numberText(high, { unit: config.unit })}`;
  if (ALONG.includes(config.gaugeType)) {
    return html`<div class="gauge-bar" role="img" aria-label=${label}><span class="bar"><span style=${{ background: colour(line, 0), left: 0, width: `${100 * part(value)}%` }}></span>
      ${marks.map(({ at, color }) => html`<i style=${{ left: `${100 * at}%`, background: color }}></i>`)}</span>
      <span class="spread quiet"><span>${valueText(low)}</span><span>${valueText(high)}</span></span></div>`;
  }
  const arc = "M 6 40 A 34 34 0 0 1 74 40";
  return html`<svg class="gauge" viewBox="0 0 80 52" role="img" aria-label=${label}>
    <path d=${arc} pathLength="100" class="gauge-back" />
    <path d=${arc} pathLength="100" class="gauge-value" style=${{ stroke: colour(line, 0) }} stroke-dasharray=${`${100 * part(value)} 100`} />
    ${marks.map(({ at, color }) => html`<line x1="0" x2="8" y1="40" y2="40" transform=${`rotate(${180 * at} 40 40)`} style=${{ stroke: color }} />`)}
    <text x="6" y="50" font-size="6" text-anchor="middle">${valueText(low)}</text><text x="74" y="50" font-size="6" text-anchor="middle">${valueText(high)}</text>
  </svg>`;
}

const WIDTH = 600, HEIGHT = 300, MARGIN = 40, TEXT_PX = 13, TEXT_MAX = 32;

// Where devices are and were on a plane, to scale.
export function Places({ chart, name, px }) {
  const fontSize = `${Math.min(TEXT_MAX, (TEXT_PX * WIDTH) / px)}px`;
  const all = chart.lines.flatMap((line) => line.points);
  const xs = all.map(([x]) => x), ys = all.map(([, y]) => y);
  const [left, right, bottom, top] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const scale = Math.min((WIDTH - 2 * MARGIN) / (right - left || 1e-9), (HEIGHT - 2 * MARGIN) / (top - bottom || 1e-9));
  const x = (value) => WIDTH / 2 + (value - (left + right) / 2) * scale;
  const y = (value) => HEIGHT / 2 - (value - (bottom + top) / 2) * scale;
  return html`<svg class="places" viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label=${`${name}: places of ${chart.lines.map((line) => line.label).join(", ")}`}>
      ${chart.lines.map((line, at) => {
        const [lastX, lastY] = line.points.at(-1);
        const place = x(lastX);
        return html`<g style=${{ color: colour(line, at) }}>
          <polyline fill="none" stroke="currentColor" stroke-width="2" stroke-opacity=".6" points=${line.points.map(([a, b]) => `${x(a).toFixed(1)},${y(b).toFixed(1)}`).join(" ")} />
          <circle cx=${place} cy=${y(lastY)} r="7" fill="currentColor" />
          <text x=${place + (place > WIDTH * 0.7 ? -12 : 12)} y=${y(lastY) + 5} text-anchor=${place > WIDTH * 0.7 ? "end" : "start"} style=${{ fontSize }}>${line.label}</text>
        </g>`;
      })}
    </svg>
    <p class="quiet">The places are not drawn on the picture.</p>`;
}
