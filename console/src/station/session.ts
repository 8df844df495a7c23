/** The token that this browser calls the station with. The page's origin is the station's own, and nobody else's. */

const KEY = "caisson.token";

export function keptToken(): string | null {
  return localStorage.getItem(KEY);
}

/** What the address brings after `#`, which no server is sent. */
export type Arrival = { kind: "nothing" } | { kind: "code"; code: string } | { kind: "token" };

/**
 * Takes what signs in out of the address, at once: it must not stay in the history. A token is never taken from there,
 * since any page can send a browser here with its own.
 */
export function takeArrival(): Arrival {
  const params = new URLSearchParams(location.hash.slice(1));
  const code = params.get("code");
  if (code === null && !params.has("token")) return { kind: "nothing" };
  history.replaceState(null, "", location.pathname + location.search);
  if (code === null) return { kind: "token" };
  // What could not be sent is refused like any other wrong code.
  return { kind: "code", code: /^[\w-]{1,200}$/.test(code) ? code : "unreadable" };
}

export function keepToken(token: string): void {
  localStorage.setItem(KEY, token);
}

export function forgetToken(): void {
  localStorage.removeItem(KEY);
}
