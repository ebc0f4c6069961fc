// The login. The token is in memory and, so that a reload of the tab keeps it, in the session storage of the tab.
// It is nowhere else: not in cookies, not in local storage, not in URLs.

import { signal } from "./ui.js";

const KEY = "trunkline.session";
const TTL_S = 12 * 3600;
const REFRESH_CHECK_MS = 60_000;

// {token, userId, email, expiresAt (ms)}; null when nobody is logged in.
export const session = signal(restored());
// Why the last login ended, for the login page.
export const ended = signal("");

function restored() {
  try {
    const kept = JSON.parse(sessionStorage.getItem(KEY));
    return kept && kept.expiresAt > Date.now() ? kept : null;
  } catch {
    return null;
  }
}

function keep(value) {
  session.value = value;
  if (value) sessionStorage.setItem(KEY, JSON.stringify(value));
  else sessionStorage.removeItem(KEY);
}

// `send` is `request` of api.js; it is passed in, because api.js needs the token of this module.
export async function logIn(send, { email, password, twoFactorCode }) {
  const body = { email, password, tokenTTL: TTL_S, ...(twoFactorCode ? { twoFactorCode } : {}) };
  const answer = await (await send("POST", "/auth/user", { body, token: false })).json();
  ended.value = "";
  keep({ token: answer.token, userId: answer.userId, email, expiresAt: Date.now() + TTL_S * 1000 });
}

// Change the password. The answer has a token of a new login, which replaces the one of here.
export async function changePassword(send, body) {
  const now = session.value;
  const answer = await (await send("PATCH", "/me/changePassword", { body: { ...body, tokenTTL: TTL_S }, proof: true })).json();
  keep({ ...now, token: answer.token, expiresAt: Date.now() + TTL_S * 1000 });
  return answer;
}

export function endSession(reason) {
  if (session.value) ended.value = reason;
  keep(null);
}

// End the login in this tab, and on the server, so that its token is of no use to anybody.
export async function logOut(send, reason = "You have logged out.") {
  const now = session.value;
  if (!now) return;
  endSession(reason);
  try {
    await send("POST", "/me/logout", { token: false, headers: { authorization: `Bearer ${now.token}` } });
  } catch (error) {
    const until = new Date(now.expiresAt).toLocaleString();
    if (!session.value) ended.value = `${reason} The server was not told, and the token is valid until ${until}: ${error.message}`;
  }
}

// Replace the token when half of its life is over. Ends when the page does.
export function keepFresh(send) {
  setInterval(async () => {
    const now = session.value;
    if (!now || now.expiresAt - Date.now() > (TTL_S * 1000) / 2) return;
    try {
      const { token } = await (await send("GET", "/me/refreshToken")).json();
      if (session.value === now) keep({ ...now, token, expiresAt: Date.now() + TTL_S * 1000 });
    } catch {
      // The next minute tries again; a token that is not valid any more has ended the session already.
    }
  }, REFRESH_CHECK_MS);
}
