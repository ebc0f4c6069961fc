// The login. The token is in the memory of the page and nowhere else. A page that begins, after a reload or in another
// tab, gets one of the same login for a cookie that no script can read. The local storage has only that there is such a
// cookie, and whose it is: {userId, email, until (ms)}.

import { signal } from "./ui.js";

const KEY = "trunkline.login";
const TTL_S = 12 * 3600;
const REFRESH_CHECK_MS = 60_000;

// {token, userId, email, expiresAt (ms)}; null when nobody is logged in.
export const session = signal(null);
// Why the last login ended, for the login page.
export const ended = signal("");

export function remembered() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY));
    return kept && kept.until > Date.now() ? kept : null;
  } catch {
    return null;
  }
}

function note({ userId, email, expiresAt }) {
  localStorage.setItem(KEY, JSON.stringify({ userId, email, until: expiresAt }));
}

// Let the browser remember the login of a token, and use the token from now on. `send` is `request` of api.js; it is
// passed in, because api.js needs the token of this module.
async function begin(send, value) {
  await send("POST", "/me/session", { token: false, headers: { authorization: `Bearer ${value.token}` } });
  note(value);
  session.value = value;
}

export async function logIn(send, { email, password, twoFactorCode }) {
  const body = { email, password, tokenTTL: TTL_S, ...(twoFactorCode ? { twoFactorCode } : {}) };
  const answer = await (await send("POST", "/auth/user", { body, token: false })).json();
  ended.value = "";
  await begin(send, { token: answer.token, userId: answer.userId, email, expiresAt: Date.now() + TTL_S * 1000 });
}

// Go on with the login that this browser remembers, if there is one.
export async function continueLogin(send) {
  const known = remembered();
  if (!known) return;
  try {
    const answer = await (await send("POST", "/auth/session", { token: false })).json();
    session.value = { token: answer.token, userId: answer.userId, email: known.email, expiresAt: Date.now() + TTL_S * 1000 };
    note(session.value);
  } catch (error) {
    if (error.status === 401) localStorage.removeItem(KEY);
    ended.value = error.status === 401 ? `You are logged out: ${error.message}` : error.message;
  }
}

// Change the password. The answer has a token of a new login, which replaces the one of here.
export async function changePassword(send, body) {
  const now = session.value;
  const answer = await (await send("PATCH", "/me/changePassword", { body: { ...body, tokenTTL: TTL_S }, proof: true })).json();
  await begin(send, { ...now, token: answer.token, expiresAt: Date.now() + TTL_S * 1000 });
  return answer;
}

export function endSession(reason) {
  if (session.value) ended.value = reason;
  if (session.value && session.value.userId === remembered()?.userId) localStorage.removeItem(KEY);
  session.value = null;
}

// What another tab does: its logout is one of here, and its login is one of here where there is none.
export function listenToTabs(send) {
  addEventListener("storage", ({ key }) => {
    if (key !== KEY) return;
    if (!remembered()) endSession("You have logged out in another tab.");
    else if (!session.value) continueLogin(send);
  });
}

// End the login in this browser, and on the server, so that its token is of no use to anybody.
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
      if (session.value !== now) return;
      const value = { ...now, token, expiresAt: Date.now() + TTL_S * 1000 };
      if (remembered()?.userId === now.userId) await begin(send, value);
      else session.value = value; // another user has logged in meanwhile, in another tab
    } catch {
      // The next minute tries again; a token that is not valid any more has ended the session already.
    }
  }, REFRESH_CHECK_MS);
}
