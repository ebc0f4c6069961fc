// Calls of the API. Every answer that is no success becomes an `ApiError` with the server's own sentence.

import { exactJson, parseExact } from "./exact.js";
import { endSession, session } from "./session.js";

const LATE_MS = 35_000; // the server itself answers within 30 s (request_timeout_s)

export class ApiError extends Error {
  // status: the HTTP status, 0 if no answer came. type: the type of the error, such as "Validation". problems: the parts
  // of a bundle that are not acceptable, as [{type, name, message}].
  constructor(status, type, message, retryAfterS = null, problems = []) {
    super(message);
    this.status = status;
    this.type = type;
    this.retryAfterS = retryAfterS;
    this.problems = problems;
  }
}

export const unreachable = () => new ApiError(0, "Unreachable", "The server does not answer. Check that it runs and that this machine reaches it.");

// The signal of a call that also ends when no answer comes, for loads that are repeated: a connection may hang for minutes.
export const inTime = (signal) => AbortSignal.any([signal, AbortSignal.timeout(LATE_MS)]);

// A path of the API from its segments: path("applications", id, "devices").
export function path(...segments) {
  return "/" + segments.map(encodeURIComponent).join("/");
}

// The path and query of a URL that the server made. It may name another of the server's names than this page was
// loaded from, and the console asks nothing of another origin.
export function ownPath(url) {
  const { pathname, search } = new URL(url, location.origin);
  return pathname + search;
}

// A query string from an object. Leaves out undefined, null and ""; objects are sent as JSON, arrays with commas.
export function queryString(query) {
  const parts = new URLSearchParams();
  for (const [name, value] of Object.entries(query || {})) {
    if (value === undefined || value === null || value === "") continue;
    if (Array.isArray(value) && value.every((each) => typeof each !== "object")) parts.set(name, value.join(","));
    else parts.set(name, typeof value === "object" ? exactJson(value) : String(value));
  }
  const text = parts.toString();
  return text ? "?" + text : "";
}

export function authorization() {
  return session.value ? { authorization: `Bearer ${session.value.token}` } : {};
}

// The response of a call. Throws ApiError unless its status is a success. `proof`: the body has a password or a code, so
// status 401 may be about that, and does not end the session.
export async function request(method, target, { query, body, headers, signal, token = true, proof = false } = {}) {
  const init = { method, signal, headers: { ...(token ? authorization() : {}), ...headers }, cache: "no-store" };
  if (body !== undefined) {
    const raw = body instanceof Blob || body instanceof FormData || typeof body === "string";
    if (!raw) init.headers["content-type"] = "application/json";
    init.body = raw ? body : exactJson(body);
  }
  const usedToken = session.value?.token;
  let answer;
  try {
    answer = await fetch(target + queryString(query), init);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw unreachable();
  }
  if (answer.ok || answer.status === 304) return answer;
  const error = await errorOf(answer);
  // A call that was sent before a new login says nothing about the new token.
  if (answer.status === 401 && token && !proof && usedToken && usedToken === session.value?.token) endSession(`You are logged out: ${error.message}`);
  throw error;
}

export async function errorOf(answer) {
  const text = await answer.text();
  let told = {};
  try {
    told = JSON.parse(text) ?? {};
  } catch {
    // A proxy may answer with another form.
  }
  const retry = Number(answer.headers.get("retry-after")) || null;
  const message = told.message || `The server answered with status ${answer.status}.`;
  return new ApiError(answer.status, told.type || "Unknown", message, retry, told.validationErrors);
}

async function decoded(answer, { exact = false } = {}) {
  try {
    const text = await answer.text();
    return text ? (exact ? parseExact : JSON.parse)(text) : null;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "Unreadable", "The answer of the server is cut off, or is not valid JSON. Try again.");
  }
}

// `exact`: the answer is read by parseExact, for what is changed and sent back.
export const get = async (target, query, options) => decoded(await request("GET", target, { ...options, query }), options);
export const post = async (target, body, options) => decoded(await request("POST", target, { ...options, body }), options);
export const patch = async (target, body, options) => decoded(await request("PATCH", target, { ...options, body }), options);
export const put = async (target, body, options) => decoded(await request("PUT", target, { ...options, body }), options);
export const del = async (target, body, options) => decoded(await request("DELETE", target, { ...options, body }), options);

// The time of the server as a text, for what ends at it, because a time in its future can be refused. Its header tells
// whole seconds: one second later, that covers all until the call.
export async function serverTime() {
  await new Promise((resolve) => setTimeout(resolve, 1000));
  const { headers } = await request("GET", "/me");
  return new Date(headers.get("date")).toISOString();
}
