// Who is logged in: the record of the user, loaded once for each login. null until it is there.

import { get } from "./api.js";
import { session } from "./session.js";
import { signal, useEffect } from "./ui.js";

export const me = signal(null);

// Load it when another user logs in. For the frame of the console.
export function useMe() {
  const user = session.value?.userId;
  useEffect(() => {
    me.value = null;
    if (!user) return undefined;
    const abort = new AbortController();
    // Who may not read it, as with a token of few scopes, is shown what everybody is.
    get("/me", { summaryInclude: "deviceCount" }, { signal: abort.signal }).then((value) => (me.value = value), () => {});
    return () => abort.abort();
  }, [user]);
}

// Whether the user operates the server, and so may read its figures.
export const isOperator = () => Boolean(me.value?.isOperator);
