// Charts of values over time, drawn by uPlot.

import { html, useEffect, useRef, useState } from "../lib/ui.js";
import { exactTime, numberText, valueText } from "../lib/format.js";
import { theme } from "../lib/theme.js";
import { gapsOf } from "./gaps.js";

// It is loaded beside the page, which shows its figures meanwhile.
let uPlot = null;
const library = import("../vendor/uplot.mjs").then((loaded) => (uPlot = loaded.default));
library.catch(() => {}); // each chart says so

const COLOURS = 8;
const SHARED = ["mousemove", "mouseleave"];
const TICK_PX = 24;
const AXIS_MIN_PX = 40, AXIS_MAX_PX = 110, LABEL_PX = 18, CHARACTER_PX = 7;

// series: [{name, unit, precision: digits after the point, step: true for values that last until the next, gaps: true if null breaks the line, color, area, bars, right: on an axis of its own}],
// data: [times in s, values, values, ...], where a value is a number or null. A line is also broken where values are missing (gaps.js). `range`: [from, to] in s that the axis shows, else that of the data.
// The pointer over a chart is shown at its time in all charts with the same `sync`. `low` and `high` fix the ends of the values; marks: [{from, to, color, label}] are lines, or areas, across them. The chart keeps its elements while only `data` or `range` change.
export function Chart({ label, series, data, range, height = 260, unit = "", onSelect, legend = true, sync, low, high, marks = [] }) {
  const box = useRef(null);
  const plot = useRef(null);
  const given = useRef({});
  const [state, setState] = useState(uPlot ? "loaded" : "loading");
  given.current = { range, data, onSelect };
  const shape = JSON.stringify([series, low, high, marks]) + theme.value + height + unit + legend;

  useEffect(() => { if (!uPlot) library.then(() => setState("loaded"), () => setState("failed")); }, []);
  useEffect(() => {
    if (state !== "loaded") return undefined;
    const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
    const axis = { stroke: colour("quiet"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), width: 1 } };
    const values = { ...axis, size: axisWidth, space: TICK_PX, values: (_, ticks) => ticks.map((each) => valueText(each) + unit) };
    const options = {
      width: box.current.clientWidth || 300,
      height,
      legend: { show: legend, live: true },
      cursor: {
        drag: { x: Boolean(onSelect), y: false, setScale: false }, points: { size: 7 }, y: !sync,
        ...(sync && { sync: { key: sync, filters: { pub: (event) => SHARED.includes(event) } } }),
      },
      scales: { x: { time: true, range: () => given.current.range || timeRange(given.current.data[0]) }, y: { range: (_, from, to) => valueRange(from, to, low, high) } },
      axes: [{ ...axis, space: 70, values: timeTicks }, values, ...(series.some((each) => each.right) ? [{ ...values, scale: "right", side: 1, grid: { show: false } }] : [])],
      series: [
        { label: "Time", value: (shown, at) => timeText(at ?? shown.data[0].at(-1)) },
        ...series.map((each, at) => ({
          label: each.name,
          ...strokes(each, colour(`chart-${(at % COLOURS) + 1}`)),
          width: 1.75,
          scale: each.right ? "right" : "y",
          spanGaps: false,
          gaps: (shown, index, from, to, nulls) => breaks(shown, index, each.gaps ? nulls : []),
          ...(data[0].length < 60 ? {} : { points: { show: false } }),
          value: (shown, value, index, place) => legendText(place === null ? newest(shown.data[index]) : value, each, unit),
        })),
      ],
      hooks: {
        drawAxes: [(shown) => marks.forEach((mark) => drawMark(shown, mark, colour("quiet")))],
        setSelect: [(shown) => {
          if (!given.current.onSelect || shown.select.width < 4) return;
          const { left, width } = shown.select;
          given.current.onSelect(shown.posToVal(left, "x"), shown.posToVal(left + width, "x"));
          shown.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
        }],
      },
    };
    plot.current = new uPlot(options, data, box.current);
    const resize = new ResizeObserver(() => {
      const width = box.current?.clientWidth;
      if (width && width !== plot.current?.width) plot.current.setSize({ width, height });
    });
    resize.observe(box.current);
    return () => {
      resize.disconnect();
      plot.current.destroy();
      plot.current = null;
    };
  }, [shape, state]);

  useEffect(() => plot.current?.setData(data), [data, range?.[0], range?.[1]]);

  return html`<div class="chart" ref=${box} style=${{ minHeight: `${height}px` }} role="img" aria-label=${`${label}. ${summary(series, data)}`}>${state === "failed" && html`<p class="chart-empty">The program for charts cannot be loaded. Load the page again.</p>`}</div>`;
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const seconds = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });

// The texts of the time axis; `step` is the time between two of them in s. Midnight is shown as the day.
function timeTicks(_, ticks, axis, space, step) {
  return ticks.map((tick) => {
    const at = new Date(tick * 1000);
    if (step >= 86_400 || at.getHours() + at.getMinutes() + at.getSeconds() === 0) return day.format(at);
    return (step >= 60 ? clock : seconds).format(at);
  });
}

function strokes({ color, step, area, bars }, usual) {
  const stroke = CSS.supports("color", color || "") ? color : usual;
  const fill = area || bars ? `color-mix(in srgb, ${stroke} ${bars ? 60 : 20}%, transparent)` : undefined;
  if (bars) return { stroke, fill, paths: uPlot.paths.bars({ size: [0.8, 60] }) };
  return step ? { stroke, fill, paths: uPlot.paths.stepped({ align: 1 }) } : { stroke, fill };
}

// The ends of the values, with some space where they are not fixed.
function valueRange(from, to, low, high) {
  const [below, above] = from === null || to === null ? [0, 1] : uPlot.rangeNum(from, to, 0.1, true);
  return [low ?? below, high ?? above];
}

function drawMark({ ctx, bbox, valToPos }, { from, to, color, label }, usual) {
  const stroke = CSS.supports("color", color || "") ? color : usual;
  const [above, below] = [from, to ?? from].map((value) => valToPos(value, "y", true)).sort((a, b) => a - b);
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.strokeStyle = ctx.fillStyle = stroke;
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
  if (above < below) {
    ctx.globalAlpha = 0.15;
    ctx.fillRect(bbox.left, above, bbox.width, below - above);
  } else {
    ctx.strokeRect(bbox.left - 5, above, bbox.width + 10, 0);
  }
  ctx.globalAlpha = 1;
  ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.textAlign = "left";
  ctx.textBaseline = "bottom";
  if (label) ctx.fillText(label, bbox.left + 4, above - 2);
  ctx.restore();
}

// From the first time to the last in s; a minute where there is one time or none.
function timeRange(times) {
  const last = times.length ? times.at(-1) : Date.now() / 1000;
  return [times.length ? Math.min(times[0], last - 60) : last - 60, last];
}

// The breaks of a line in pixels, with those that its nulls make, by their places.
function breaks(shown, index, nulls) {
  const [times] = shown.data;
  const missing = gapsOf(times, shown.data[index]).map((each) => each.map((time) => shown.valToPos(time, "x", true)));
  return [...nulls, ...missing].sort(([one], [other]) => one - other);
}

// The width of an axis of values, so that its longest label has room.
function axisWidth(shown, labels) {
  const longest = Math.max(0, ...(labels || []).map((each) => each.length));
  return Math.min(AXIS_MAX_PX, Math.max(AXIS_MIN_PX, LABEL_PX + CHARACTER_PX * longest));
}

const timeText = (at) => (at === undefined || at === null ? "-" : exactTime(at * 1000));
const said = (value, { precision, precisionType }) => numberText(value, { precision, precisionType });
const legendText = (value, each, unit) => (value === null || value === undefined ? "-" : said(value, each) + (each.unit ?? unit));
const newest = (values) => values?.findLast((each) => each !== null && each !== undefined);

// The newest value of each series, for readers who do not see the chart.
function summary(series, data) {
  return series.map((each, at) => {
    const value = newest(data[at + 1]);
    return `${each.name}: ${value === undefined ? "no value" : said(value, each) + (each.unit || "")}`;
  }).join(", ");
}
