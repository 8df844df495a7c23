/** What a browser has kept that signed in to this station before. */
export function signedIn(url: string, token: string) {
  return { cookies: [], origins: [{ origin: new URL(url).origin, localStorage: [{ name: "caisson.token", value: token }] }] };
}
