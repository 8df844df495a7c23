/** The token with which this browser calls the station. Only the station serves pages of this origin. */

const KEY = "caisson.token";

export function keptToken(): string | null {
  return localStorage.getItem(KEY);
}

/** What the address contains after `#`, which browsers do not send to servers. */
export type Arrival = { kind: "nothing" } | { kind: "code"; code: string } | { kind: "token" };

/**
 * Removes the sign-in code from the address immediately, because it must not stay in the history. Never accepts a token
 * from the address, since any page can send a browser here with its own token.
 */
export function takeArrival(): Arrival {
  const params = new URLSearchParams(location.hash.slice(1));
  const code = params.get("code");
  if (code === null && !params.has("token")) return { kind: "nothing" };
  history.replaceState(null, "", location.pathname + location.search);
  if (code === null) return { kind: "token" };
  // The station rejects the replacement of a malformed code like any other wrong code.
  return { kind: "code", code: /^[\w-]{1,200}$/.test(code) ? code : "unreadable" };
}

export function keepToken(token: string): void {
  localStorage.setItem(KEY, token);
}

export function forgetToken(): void {
  localStorage.removeItem(KEY);
}
