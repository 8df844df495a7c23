/** The token that this browser calls the station with. The page's origin is the station's own, and nobody else's. */

const KEY = "caisson.token";

/** Also takes one that the address brings after `#token=`, which no server is sent, and cleans the address of it. */
export function keptToken(): string | null {
  const brought = new URLSearchParams(location.hash.slice(1)).get("token");
  if (brought !== null && brought !== "") {
    localStorage.setItem(KEY, brought);
    history.replaceState(null, "", location.pathname + location.search);
  }
  return localStorage.getItem(KEY);
}

export function keepToken(token: string): void {
  localStorage.setItem(KEY, token);
}

export function forgetToken(): void {
  localStorage.removeItem(KEY);
}
