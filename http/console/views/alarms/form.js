// The form of an alarm rule: what must not be so, of which devices, and who is told.

import { path } from "../../lib/api.js";
import { COMPARISONS, isBetween, LEVELS, TYPES } from "./words.js";

const is = (...types) => (texts) => types.includes(texts["condition.type"]);
const compares = (test) => (texts) => texts["condition.type"] === "attribute" && test(texts["condition.comparison"]);

// names: those of the attributes of the application. groups: its groups of people, [id, name].
export function ruleFields(app, names, groups, rule) {
  const known = [...new Set([rule?.condition.attribute, ...names].filter(Boolean))];
  const some = groups.length > 0;
  // Users whom the rule tells are not in the form, and stay.
  const users = rule?.notify?.steps[0].userIds?.length > 0;
  const told = (texts) => Boolean(users || texts.emails || texts.url || texts.groupIds?.length);
  const attribute = { name: "condition.attribute", label: "Attribute", required: true, show: is("attribute", "change") };
  return [
    { name: "name", label: "Name", required: true, placeholder: "Too warm" },
    { name: "condition.type", label: "What is wrong", type: "select", options: TYPES },
    known.length ? { ...attribute, type: "select", options: [["", "Choose an attribute"], ...known] } : attribute,
    { name: "condition.comparison", label: "How it compares", type: "select", options: COMPARISONS, show: is("attribute") },
    { name: "condition.value", label: "Value", required: true, show: compares((each) => !isBetween(each)), hint: 'A number, true, false or a text; "7" is a text' },
    { name: "condition.min", label: "From", type: "number", required: true, show: compares(isBetween) },
    { name: "condition.max", label: "To", type: "number", required: true, show: compares(isBetween) },
    { name: "condition.by", label: "By how much", type: "number", show: is("change"), hint: "Without it, any other value counts" },
    { name: "condition.level", label: "Of this level or above", type: "select", options: LEVELS, value: "error", show: is("event") },
    { name: "condition.subject", label: "Subject", show: is("event"), hint: "Such as Pump *, where * is any text; without it, any subject" },
    { name: "silentMinutes", label: "Silent for minutes", type: "number", required: true, value: 15, show: is("silence") },
    { name: "minutes", label: "For minutes", type: "number", show: is("attribute", "disconnected"), hint: "How long it must be so before there is an alarm; at once without it" },
    { name: "condition.hysteresis", label: "Back by", type: "number", show: compares((each) => !["equals", "differs"].includes(each)), hint: "How far the value must come back before the alarm ends, so that a value that trembles is one alarm" },
    { name: "severity", label: "Severity", type: "select", options: ["warning", "error", "critical", "info"] },
    { name: "deviceIds", label: "Devices by name", type: "records", source: path("applications", app, "devices") },
    { name: "deviceTags", label: "Devices by tag", type: "filters", rows: 2, hint: "key=value, key or =value, one a line. Without names and tags the rule is about all devices" },
    { name: "emails", label: "Mail to", type: "lines", rows: 2, hint: some ? "Addresses, one a line" : "Addresses, one a line; for a team, make a group first, which several rules can tell" },
    { name: "groupIds", label: "Groups", type: "choices", options: groups, show: () => some },
    { name: "url", label: "Call this URL", placeholder: "https://", hint: "It gets the alarm as JSON" },
    { name: "laterMinutes", label: "If nobody acknowledges it, after minutes", type: "number", value: 10, show: told },
    { name: "laterEmails", label: "mail to", type: "lines", rows: 2, show: told },
    { name: "laterGroupIds", label: "the groups", type: "choices", options: groups, show: (texts) => some && told(texts) },
    { name: "laterUrl", label: "and call this URL", placeholder: "https://", show: told },
    { name: "repeatMinutes", label: "Tell all again every minutes", type: "number", show: told },
    { name: "quietStart", label: "Tell nobody from", placeholder: "22:00", show: told },
    { name: "quietEnd", label: "until", placeholder: "06:00", show: told },
    { name: "tellsEnd", label: "Also tell them when it has ended", type: "checkbox", value: true, show: told },
    { name: "enabled", label: "Enabled", type: "checkbox", value: true },
  ];
}
