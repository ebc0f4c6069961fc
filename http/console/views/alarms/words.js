// What an alarm rule says, in words, and how the form of a rule says it to the API.

import { exactJson } from "../../lib/exact.js";
import { plural } from "../../lib/format.js";

export const COMPARISONS = [
  ["above", "is above"], ["atLeast", "is at least"], ["below", "is below"], ["atMost", "is at most"], ["outside", "is not between"], ["inside", "is between"],
  ["equals", "is equal to"], ["differs", "is other than"],
];
export const TYPES = [
  ["attribute", "A value is too high, too low, or wrong"], ["silence", "A device is silent"], ["disconnected", "A device has lost its connection"], ["event", "An event says so"],
  ["change", "A value changes"],
];
export const LEVELS = ["critical", "error", "warning", "info"];
const BETWEEN = ["outside", "inside"];
export const isBetween = (comparison) => BETWEEN.includes(comparison);

export function time(seconds) {
  const [number, unit] = seconds % 3600 === 0 ? [seconds / 3600, "hour"] : seconds % 60 === 0 ? [seconds / 60, "minute"] : [seconds, "second"];
  return `${number} ${unit}${number === 1 ? "" : "s"}`;
}

export function conditionWords({ condition, durationSeconds }) {
  const { type, attribute, comparison, value, min, max, hysteresis, by, seconds } = condition;
  const during = durationSeconds ? ` for ${time(durationSeconds)}` : "";
  if (type === "silence") return `silent for ${time(seconds)}`;
  if (type === "disconnected") return `disconnected${during}`;
  if (type === "event") return `an event of level ${condition.level}${condition.level === "critical" ? "" : " or above"}${condition.subject ? ` about ${condition.subject}` : ""}`;
  if (type === "change") return `${attribute} changes${by === undefined ? "" : ` by ${by} or more`}`;
  const words = COMPARISONS.find(([key]) => key === comparison)?.[1] || comparison;
  const bound = isBetween(comparison) ? `${min} and ${max}` : String(value);
  return `${attribute} ${words} ${bound}${during}${hysteresis ? `, until it is back by ${hysteresis}` : ""}`;
}

export function devicesWords(rule) {
  const parts = [];
  if (rule.deviceIds?.length) parts.push(rule.deviceIds.length === 1 ? "one device" : `${rule.deviceIds.length} devices`);
  if (rule.deviceTags?.length) parts.push(`devices with ${rule.deviceTags.map(({ key, value }) => (value === undefined ? key : `${key || "any key"}=${value}`)).join(" or ")}`);
  if (rule.deviceQuery) parts.push("devices of a query");
  return parts.join(", and ") || (rule.condition.type === "event" ? "all devices, and events without one" : "all devices");
}

// names: those of the groups, by their ids.
export function noticeWords(notify, names) {
  if (!notify) return "nobody";
  return notify.steps.map(({ afterSeconds = 0, emails = [], userIds = [], groupIds = [], url }) => {
    const users = userIds.length ? [plural(userIds.length, "user")] : [];
    const who = [...groupIds.map((id) => names.get(id) || "a group"), ...users, ...emails, ...(url ? [url] : [])].join(", ");
    return afterSeconds ? `after ${time(afterSeconds)} ${who}` : who;
  }).join("; ");
}

const minutes = (seconds) => (seconds ? seconds / 60 : undefined);
const seconds = (given) => Math.round(given * 60_000) / 1000;

// The values of the form at first.
export function formValues(rule) {
  const { notify, condition } = rule;
  const [first, second] = notify?.steps || [];
  return {
    ...rule,
    condition: { ...condition, value: condition.value === undefined ? undefined : textOf(condition.value) },
    minutes: minutes(rule.durationSeconds), silentMinutes: minutes(condition.seconds),
    emails: first?.emails, groupIds: first?.groupIds, url: first?.url, laterEmails: second?.emails, laterGroupIds: second?.groupIds, laterUrl: second?.url, laterMinutes: minutes(second?.afterSeconds),
    repeatMinutes: minutes(notify?.repeatSeconds), tellsEnd: notify?.tellsEnd, quietStart: notify?.quietHours?.start, quietEnd: notify?.quietHours?.end,
  };
}

// The body of a rule from the values of the form. `before`: the rule that it changes, of which the form does not show everything.
export function bodyOf(values, before) {
  const { condition, name, severity, enabled, deviceIds, deviceTags } = values;
  const { type } = condition;
  const body = { name, severity, enabled, condition: { type } };
  const field = (key, given) => given !== undefined && (body.condition[key] = given);
  if (type === "attribute") {
    for (const key of ["attribute", "comparison", "min", "max", "hysteresis"]) field(key, condition[key]);
    if (!isBetween(condition.comparison)) field("value", valueOf(condition.value));
  } else if (type === "change") {
    field("attribute", condition.attribute);
    field("by", condition.by);
  } else if (type === "event") {
    field("level", condition.level);
    field("subject", condition.subject);
  } else if (type === "silence") field("seconds", values.silentMinutes && seconds(values.silentMinutes));
  body.durationSeconds = ["attribute", "disconnected"].includes(type) && values.minutes ? seconds(values.minutes) : 0;
  const optional = { deviceIds: deviceIds?.length ? deviceIds : undefined, deviceTags: deviceTags?.length ? deviceTags : undefined, notify: notifyOf(values, before) };
  for (const [key, given] of Object.entries(optional)) {
    if (given !== undefined) body[key] = given;
    else if (before?.[key] !== undefined) body[key] = null;
  }
  return body;
}

// What a form that shows a rule changes: the body without what the form would give as it was opened.
export function changesOf(body, unchanged) {
  return Object.fromEntries(Object.entries(body).filter(([key, given]) => exactJson(given) !== exactJson(unchanged[key])));
}

// Whom a step tells; undefined if that is nobody. Users whom the step before named stay in it.
function stepOf(was, emails = [], groupIds = [], url = undefined) {
  const userIds = was?.userIds || [];
  const lists = Object.entries({ emails, userIds, groupIds }).filter(([, ids]) => ids.length);
  return lists.length || url ? { ...Object.fromEntries(lists), ...(url ? { url } : {}) } : undefined;
}

function notifyOf(values, before) {
  const [was, next, ...rest] = before?.notify?.steps || []; // the form shows two
  const first = stepOf(was, values.emails, values.groupIds, values.url);
  if (!first) return undefined;
  const steps = [first];
  if (was?.afterSeconds) first.afterSeconds = was.afterSeconds;
  const later = stepOf(next, values.laterEmails, values.laterGroupIds, values.laterUrl);
  if (later) steps.push({ afterSeconds: seconds(values.laterMinutes ?? 10), ...later });
  if (Boolean(values.quietStart) !== Boolean(values.quietEnd)) {
    throw new Error(`${values.quietStart ? "quietEnd" : "quietStart"} is empty; give the time from which nobody is told and the time until then, or none of them.`);
  }
  const zone = before?.notify?.quietHours?.timeZone || Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
  return {
    steps: [...steps, ...rest], tellsEnd: Boolean(values.tellsEnd),
    ...(values.repeatMinutes ? { repeatSeconds: seconds(values.repeatMinutes) } : {}),
    ...(values.quietStart ? { quietHours: { start: values.quietStart, end: values.quietEnd, timeZone: zone } } : {}),
  };
}

// A value as a text: a text that would be read as something else stands in quotation marks, such as "007".
const textOf = (value) => (typeof value === "string" && valueOf(value) !== value ? `"${value}"` : String(value));

// A number, true or false if the text is one, else the text, also the one in quotation marks.
function valueOf(text) {
  if (text === undefined) return undefined;
  if (text === "true" || text === "false") return text === "true";
  if (text.length > 1 && text.startsWith('"') && text.endsWith('"')) return text.slice(1, -1);
  return text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
}
