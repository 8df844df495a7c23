/** The token that this browser calls the station with. The page's origin is the station's own, and nobody else's. */

const KEY = "caisson.token";

export function keptToken(): string | null {
  return localStorage.getItem(KEY);
}

/**
 * The token that the address brings after `#token=`, which no server is sent; the address is cleaned of it. Any page can
 * send a browser here with its token, so it never replaces another one unasked.
 */
export function broughtToken(): string | null {
  const brought = new URLSearchParams(location.hash.slice(1)).get("token");
  if (brought === null || brought === "") return null;
  history.replaceState(null, "", location.pathname + location.search);
  return brought;
}

export function keepToken(token: string): void {
  localStorage.setItem(KEY, token);
}

export function forgetToken(): void {
  localStorage.removeItem(KEY);
}
