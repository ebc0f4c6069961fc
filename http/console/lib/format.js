// Numbers and names as text; numbers are short and in the reader's locale.

import { exactJson } from "./exact.js";

const whole = new Intl.NumberFormat();
const short = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 3 });
const precise = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 6, maximumFractionDigits: 0, roundingPriority: "morePrecision" });
const scientific = new Intl.NumberFormat(undefined, { notation: "scientific", maximumSignificantDigits: 6 });
const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"];
const ACRONYMS = { api: "API", ca: "CA", cors: "CORS", csv: "CSV", html: "HTML", http: "HTTP", json: "JSON", jwt: "JWT", mqtt: "MQTT", sid: "SID", ssl: "SSL", ttl: "TTL", uri: "URI", url: "URL" };

// 12,345
export const count = (value) => (value === undefined || value === null ? "-" : whole.format(value));

// 1 device, 2 devices
export const plural = (number, noun, many = noun + "s") => `${count(number)} ${number === 1 ? noun : many}`;

// Whether a number is so large or small that its zeros would hide it; reports write the same ones with an exponent.
const isExtreme = (value) => typeof value === "number" && (Math.abs(value) >= 1e21 || (value !== 0 && Math.abs(value) < 1e-6));

// A value of a device: numbers with six digits, or all digits before the point if there are more, extreme ones as 1.5E308;
// everything else as JSON.
export function valueText(value) {
  if (value === undefined) return "-";
  if (isExtreme(value)) return scientific.format(value);
  if (typeof value === "number" || typeof value === "bigint") return precise.format(value);
  return typeof value === "string" ? value : exactJson(value);
}

// A number with so many digits after the point, or significant ones, and with its unit.
export function numberText(value, { precision, precisionType, unit } = {}) {
  const digits = Number(precision);
  const exact = typeof value === "number" && Math.abs(value) < 1e21 && precision !== undefined && precision !== "" && digits >= 0 && digits <= 20;
  const fixed = precisionType === "significant" ? { maximumSignificantDigits: Math.max(1, digits) } : { minimumFractionDigits: digits, maximumFractionDigits: digits };
  const text = exact ? new Intl.NumberFormat(undefined, fixed).format(value) : valueText(value);
  return unit ? `${text} ${unit}` : text;
}

// The unit of an attribute of a device: the value of its attribute tag `unit`, "" for none.
export const unitOf = (attribute) => attribute?.attributeTags?.unit ?? "";

// A value with its unit: 21.5 °C
export const withUnit = (text, unit) => (unit ? `${text}\u00a0${unit}` : text);

// A tag, or a filter of tags, which may have a key or a value alone: key=value, key, =value.
export const tagText = ({ key = "", value }) => (value === undefined ? key : `${key}=${value}`);

// 1.2/s
export function rate(perSecond) {
  if (perSecond === undefined || perSecond === null || Number.isNaN(perSecond)) return "-";
  return `${perSecond >= 100 ? whole.format(Math.round(perSecond)) : short.format(perSecond)}/s`;
}

// 1.2 MB, decimal units
export function bytes(value) {
  if (value === undefined || value === null) return "-";
  let unit = 0, left = Math.abs(value);
  while (left >= 999.5 && unit < UNITS.length - 1) {
    left /= 1000;
    unit += 1;
  }
  return `${value < 0 ? "-" : ""}${unit ? short.format(left) : Math.round(left)} ${UNITS[unit]}`;
}

// 12 ms, 3.4 s, 5 min, 2 h, 3 d
export function duration(ms) {
  if (ms === undefined || ms === null || Number.isNaN(ms)) return "-";
  if (ms < 1000) return `${short.format(ms)} ms`;
  const s = ms / 1000;
  if (s < 60) return `${s < 10 ? short.format(s) : Math.floor(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 48 * 3600) return `${Math.floor(s / 3600)} h`;
  return `${whole.format(Math.floor(s / 86400))} d`;
}

// The exact local time with the zone: 2026-11-21 14:03:07.123 GMT+1
const exact = new Intl.DateTimeFormat("sv-SE", {
  year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit",
  fractionalSecondDigits: 3, timeZoneName: "short",
});
export const exactTime = (time) => exact.format(new Date(time)).replace(",", ".");

// A time as the browser's fields for local times take it, as exact as it is: 2026-11-21T14:03, 2026-11-21T14:03:07 or
// 2026-11-21T14:03:07.123. "" for what is no time.
export function localTime(time) {
  const at = new Date(time);
  if (Number.isNaN(at.getTime())) return "";
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 23).replace(/(:00)?\.000$/, "");
}

// The step of a field with this time, so that all parts of the time are shown and can be changed.
export function timeStep(text, usual = "any") {
  if (text.includes(".")) return "0.001";
  return text.length > "2026-11-21T14:03".length ? "1" : usual;
}

const today = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const year = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric" });

// A time as short as it is clear: of today the clock, of this year the day and the clock, else the date.
export function shortTime(time, now = Date.now()) {
  const then = new Date(time), at = new Date(now);
  if (then.toDateString() === at.toDateString()) return today.format(then);
  return (then.getFullYear() === at.getFullYear() ? day : year).format(then);
}

// "basicAuthUsername" as "basic auth username"
export function wordsOf(name) {
  const words = name.replace(/([a-z0-9])([A-Z])/g, "$1 $2").replace(/([A-Z])([A-Z][a-z])/g, "$1 $2").split(/[ _-]/);
  return words.map((each) => ACRONYMS[each.toLowerCase()] || each.toLowerCase()).join(" ");
}
