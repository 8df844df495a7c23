import { type RequestHead, requestTarget } from "../http/head.ts";
import { headerValue } from "../http/headers.ts";
import { tokenMatcher } from "./preview-token.ts";

/** The prefix of all preview cookies. Browsers send them to every port of a host, so none of them is passed inside. */
export const COOKIE_PREFIX = "caisson-preview-";
const PARAMETER = "caisson-token";
const LOCALHOST = ".localhost";

export type Access =
  /**
   * Admitted. `path` is the target without our parameter. `byHost`: the token is in the host name by which the browser
   * knows the page.
   */
  | { kind: "open"; path: string; byHost: boolean }
  /** The token was in the query. It moves to a cookie, out of the address. */
  | { kind: "enter"; path: string; cookie: string }
  | { kind: "refused" };

/**
 * Decides who may see a preview: clients with its token, in the host name, in the query, or in the cookie that this
 * sets. Called for every request.
 */
export function createPreviewAccess(options: { token: string; cookieId: number }): (head: RequestHead) => Access {
  const matches = tokenMatcher(options.token);
  const cookieName = `${COOKIE_PREFIX}${options.cookieId}`;
  return (head) => {
    const { form, host, path: target } = requestTarget(head);
    if (form === "authority") return { kind: "refused" };
    const { path, values } = withoutParameter(target);
    const name = host.endsWith(".") ? host.slice(0, -1) : host;
    if (name.endsWith(LOCALHOST) && matches(name.slice(0, -LOCALHOST.length))) return { kind: "open", path, byHost: true };
    if (values.some(matches)) {
      if (head.method !== "GET" && head.method !== "HEAD") return { kind: "open", path, byHost: false };
      return { kind: "enter", path, cookie: `${cookieName}=${options.token}; HttpOnly; SameSite=Strict; Path=/` };
    }
    const hasCookie = cookiesOf(head).some(([key, value]) => key === cookieName && matches(value));
    return hasCookie && !isFromElsewhere(head) ? { kind: "open", path, byHost: false } : { kind: "refused" };
  };
}

export function cookiesOf(head: RequestHead): [name: string, value: string][] {
  return head.headers
    .filter((header) => header.lower === "cookie")
    .flatMap((header) => header.value.split(";"))
    .map((part) => {
      const equals = part.indexOf("=");
      return equals < 0 ? ["", part.trim()] : [part.slice(0, equals).trim(), part.slice(equals + 1).trim()];
    });
}

/**
 * A cookie identifies the browser, not the page that sends a request, and to the browser every port of this machine is
 * the same site, even other previews. Other pages may link to this one, but must not change anything here.
 */
function isFromElsewhere(head: RequestHead): boolean {
  const isVisit = headerValue(head, "sec-fetch-mode") === "navigate" && (head.method === "GET" || head.method === "HEAD");
  if (isVisit) return false;
  const site = headerValue(head, "sec-fetch-site");
  if (site !== undefined && site !== "same-origin" && site !== "none") return true;
  const origin = headerValue(head, "origin");
  return origin !== undefined && origin.replace(/^https?:\/\//, "") !== headerValue(head, "host");
}

function withoutParameter(target: string): { path: string; values: string[] } {
  const question = target.indexOf("?");
  if (question < 0 || !target.includes(PARAMETER, question)) return { path: target, values: [] };
  const isOurs = (part: string) => part.startsWith(`${PARAMETER}=`);
  const parts = target.slice(question + 1).split("&");
  const rest = parts.filter((part) => !isOurs(part)).join("&");
  return {
    path: target.slice(0, question) + (rest === "" ? "" : `?${rest}`),
    values: parts.filter(isOurs).map((part) => part.slice(PARAMETER.length + 1)),
  };
}
