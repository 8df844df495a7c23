/** The storage of a browser that is already signed in to this station. */
export function signedIn(url: string, token: string) {
  return { cookies: [], origins: [{ origin: new URL(url).origin, localStorage: [{ name: "caisson.token", value: token }] }] };
}
