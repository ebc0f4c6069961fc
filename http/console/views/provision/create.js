// The calls that create devices with an access key each.

import { path, post } from "../../lib/api.js";
import { toDevice } from "../device/fields.js";

export const KEYS_MAX = 100; // so many secrets are in one answer at most
const DEVICES_MAX = 10_000;
const NUMBER = /#+/;

// One device, and a key for it alone: {record, access}. Who may not make keys gets {record, error}: the device is there.
export async function createDevice(app, values, { withKey }) {
  if (withKey && !values.attributes?.length) throw new Error("attributes is empty; name at least one thing that the device reports, such as temperature=number.");
  const record = await post(path("applications", app, "devices"), toDevice(values));
  if (!withKey) return { record };
  const work = post(path("applications", app, "keys"), { name: record.name, deviceIds: [record.id] });
  return work.then(({ key, secret }) => ({ record, access: { key, secret } }), (error) => ({ record, error }));
}

// Devices of a recipe: {rows: [{name, deviceId, accessKey, accessSecret, error}]}, without keys unless `withKeys`, or {jobId} for more than have keys.
export async function createFromRecipe(app, recipe, { pattern, count, first = 1, tags = [], withKeys }) {
  if (!Number.isInteger(count) || count < 1 || count > DEVICES_MAX) throw new Error(`count is ${count}; it must be a whole number from 1 to ${DEVICES_MAX}.`);
  if (count > 1 && !NUMBER.test(pattern)) throw new Error(`pattern is "${pattern}"; it must have a # for the number, such as pump-##.`);
  const names = Array.from({ length: count }, (_, at) => (count === 1 && !NUMBER.test(pattern) ? pattern : numbered(pattern, first + at)));
  const header = ["name", ...tags.map((each) => each.key)];
  const lines = names.map((name) => [name, ...tags.map((each) => each.value)]);
  const body = { csv: [header, ...lines].map((line) => line.map(quoted).join(",")).join("\n"), nameColumn: "name", makeUniqueKeySecret: withKeys && count <= KEYS_MAX };
  const answer = await post(`${path("applications", app, "device-recipes", recipe)}/bulkCreate`, body);
  if (answer.jobId) return answer;
  const rows = rowsOf(answer.csvResult);
  if (rows.every((each) => !each.deviceId)) throw new Error(rows[0]?.error || "No device was created.");
  return { rows };
}

const numbered = (pattern, number) => pattern.replace(NUMBER, (hashes) => String(number).padStart(hashes.length, "0"));
const quoted = (text) => `"${String(text).replaceAll('"', '""')}"`;

// The lines of a CSV by the names of its header.
function rowsOf(csv) {
  const [header, ...lines] = csv.trim().split(/\r?\n(?=(?:[^"]*"[^"]*")*[^"]*$)/).map(cells);
  return lines.map((line) => Object.fromEntries(header.map((name, at) => [name, line[at] ?? ""])));
}

function cells(line) {
  return [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(([, inside, plain]) => (inside === undefined ? plain : inside.replaceAll('""', '"')));
}
