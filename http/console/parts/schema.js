// Forms from the API document: the fields of a body, with the names, bounds and descriptions that the server has itself.

import { get } from "../lib/api.js";
import { wordsOf } from "../lib/format.js";
import { useData } from "../lib/hooks.js";
import { html } from "../lib/ui.js";
import { note } from "./notes.js";

const LONG_FROM = 2000;
// Descriptions that say no more than the label of the field.
const PLAIN = /^(The name; 1 to|A text for people|The (first|last|user) name$|The \w+, by id$|Tags: values by key$|The port of the host$)/;
const PEM_FILES = ".pem,.crt,.cer,.key,.txt";

let asked = null, loaded;

function load() {
  asked ||= get("/openapi.json").then((document) => (loaded = document), (error) => {
    asked = null;
    note(`The API document cannot be loaded, and forms need it: ${error.message}`, "bad");
    throw error;
  });
  return asked;
}

// The API document, null until it is there. It is loaded once.
export const useDocument = () => useData(load, []).value ?? loaded ?? null;

// The fields of the body with the name `name`, for Form; null while `document` is.
// only: the names that are taken, in this order; hide: names that are left out; more: {name: properties of its field};
// change: the form changes a record, so what is emptied is sent as empty, and no defaults are set.
export function fieldsOf(document, name, { only, hide = [], more = {}, change = false, prefix = "" } = {}) {
  if (!document) return null;
  const { properties, required = [] } = document.components.schemas[name];
  return (only || Object.keys(properties)).filter((each) => properties[each] && !hide.includes(each)).map((each) => ({
    ...fieldOf(document, each, properties[each], { required: required.includes(each), change }),
    ...more[each],
    name: prefix + each,
  }));
}

// The name of the schema of a property, such as "AwsPost" of "awsConfig" of "CredentialPost".
export function schemaOf(document, name, property) {
  return reference(document.components.schemas[name].properties[property]);
}

const reference = (schema) => (schema.$ref || schema.anyOf?.find((each) => each.$ref)?.$ref)?.split("/").at(-1);

function fieldOf(document, name, given, { required, change }) {
  const choices = given.anyOf || [given];
  const nullable = choices.some((each) => each.type === "null");
  const first = choices.find((each) => each.type !== "null");
  const schema = { ...(first.$ref ? document.components.schemas[reference(first)] : first), ...given };
  const told = PLAIN.test(given.description) ? undefined : coded(given.description);
  const field = { label: labelOf(name), hint: told, required: required && !change, value: change ? undefined : given.default };
  const cleared = nullable ? null : undefined;
  if (schema.enum) {
    const options = schema.enum.filter((each) => each !== null);
    return { ...field, type: "select", options: required || change || given.default !== undefined ? options : ["", ...options] };
  }
  if (schema.type === "boolean" || first.type === "boolean") return { ...field, type: "checkbox" };
  if (["integer", "number"].includes(first.type)) return { ...field, type: "number", blank: change ? cleared : undefined };
  if (first.type === "array") {
    const item = reference(first.items);
    const type = item === "TagFilter" ? "filters" : first.items.type === "string" ? "lines" : "json";
    return { ...field, type, blank: change ? [] : undefined };
  }
  if (first.type === "object" && first.additionalProperties?.type === "string") return { ...field, type: "map", blank: change ? {} : undefined };
  if (first.type !== "string") return { ...field, type: "json", blank: change ? cleared : undefined };
  const secret = /never shown/.test(given.description || "") || name === "password";
  const long = first.maxLength >= LONG_FROM && name !== "password";
  return {
    ...field,
    type: long ? "longtext" : secret ? "secret" : "text",
    autocomplete: secret ? "new-password" : "off",
    hint: change && secret ? html`${told}. Leave it empty to keep it` : told,
    blank: change && !secret ? (nullable ? null : "") : undefined,
    file: long && /PEM/.test(given.description || "") ? PEM_FILES : undefined,
    rows: long ? (name === "description" ? 2 : 4) : undefined,
  };
}

// A description with what stands between backquotes as code.
export function coded(text) {
  if (!text?.includes("`")) return text;
  return text.split("`").map((part, at) => (at % 2 ? html`<code>${part}</code>` : part));
}

// "basicAuthUsername" as "Basic auth username"
export function labelOf(name) {
  const text = wordsOf(name);
  return text[0].toUpperCase() + text.slice(1);
}

// Records whose type decides which configuration they have: "aws" has the object `awsConfig`.

// The types with what they are, for a select: [["aws", "An account of Amazon Web Services"], ...]
export function typeChoices(document, name, field) {
  const { properties } = document.components.schemas[name];
  const told = (type) => `${properties[`${type}Config`].description} (${type})`;
  return properties[field].enum.map((type) => [type, told(type)]).sort(([, one], [, other]) => (one < other ? -1 : 1));
}

// The fields of the configurations: of the one `type`, or of all, each shown when the field `field` has its type.
export function configFields(document, name, field, { type, change = false } = {}) {
  const { properties } = document.components.schemas[name];
  const types = type ? [type] : properties[field].enum;
  return types.flatMap((each) => {
    const config = schemaOf(document, name, `${each}Config`);
    const shown = type ? {} : { show: (values) => values[field] === each };
    return fieldsOf(document, config, { prefix: `${each}Config.`, change }).map((one) => ({ ...one, ...shown }));
  });
}

// A configuration as rows of Facts, and its long texts, such as certificates, as [label, text].
export function configFacts(config) {
  const given = Object.entries(config || {}).filter(([, value]) => value !== null && value !== "");
  const isLong = (value) => typeof value === "string" && value.includes("\n");
  const shown = (value) => (typeof value === "boolean" ? (value ? "yes" : "no") : typeof value === "object" ? JSON.stringify(value) : value);
  return {
    rows: given.filter(([, value]) => !isLong(value)).map(([name, value]) => [labelOf(name), shown(value)]),
    texts: given.filter(([, value]) => isLong(value)).map(([name, value]) => [labelOf(name), value]),
  };
}
