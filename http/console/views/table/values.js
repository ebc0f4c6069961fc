// Values of columns as texts and back. An empty text is null, and "" (two quotation marks) is a text without letters, as
// in CSV files of the API. What is no value of the column stays a text; the server says what is wrong with it.

import { isLargeDouble } from "../../lib/exact.js";

const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
const WHOLE = /^-?\d+$/;

export function numberOf(text) {
  const given = text.trim();
  if (!NUMBER.test(given)) return null;
  const number = Number(given);
  if (WHOLE.test(given) && !Number.isSafeInteger(number)) return BigInt(given);
  return Number.isFinite(number) ? number : null; // JSON would make null of 1e400
}

export function valueOf(type, text) {
  if (text === null || text === "") return null;
  if (type === "string") return text === '""' ? "" : text;
  if (type === "number") return numberOf(text) ?? text;
  return { true: true, false: false }[text.trim().toLowerCase()] ?? text;
}

export function textOf(value) {
  if (value === null || value === undefined) return "";
  if (isLargeDouble(value)) return value.toExponential();
  return value === "" ? '""' : String(value);
}

// Whether the server takes the value for a column of the type.
export const fits = (type, value) =>
  value === null || typeof value === type || (type === "number" && typeof value === "bigint");
