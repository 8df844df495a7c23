import type { RequestHead, ResponseHead } from "../http/head.ts";
import { type Header, header, headerValue } from "../http/headers.ts";
import { COOKIE_PREFIX } from "./preview-access.ts";

/** Translates names between the browser's view of a preview and the program's. */
export interface PreviewRewrite {
  /** Returns the request as a local client of the program would send it, without the token and our cookies. */
  request(head: RequestHead, path: string): RequestHead;
  /** Returns the response as the browser must see it. `host` is the name that the browser requested. */
  response(head: ResponseHead, target: { host: string; byHost: boolean }): ResponseHead;
}

export function createPreviewRewrite(options: { token: string; port: number }): PreviewRewrite {
  const { token, port } = options;
  const inside = port === 80 ? "localhost" : `localhost:${port}`;
  const ownName = new RegExp(`${token}\\.localhost(?:(:|%3a)\\d+)?`, "gi");
  const toInside = new RegExp(
    `^https?://(?:localhost|127\\.0\\.0\\.1|\\[::1\\]|0\\.0\\.0\\.0)${port === 80 ? "(?::80)?" : `:${port}`}(?=[/?#]|$)`,
    "i",
  );
  /** Removes the token wherever a program on the page put its own address. */
  const hide = (text: string) =>
    text.includes(token) ? text.replace(ownName, (_, colon = ":") => `localhost${colon}${port}`).replaceAll(token, "token") : text;

  /** Returns null for a header that is not passed on. */
  const requestHeader = (each: Header, host: string): Header | null => {
    if (each.lower === "host") return header(each.name, inside);
    if (each.lower === "cookie" && each.value.includes(COOKIE_PREFIX)) {
      const rest = each.value.split(";").filter((part) => !part.trim().startsWith(COOKIE_PREFIX));
      return rest.length === 0 ? null : header(each.name, hide(rest.join(";").trim()));
    }
    const isOrigin = each.lower === "origin" || each.lower === "referer";
    const value = hide(isOrigin ? ownOriginInside(each.value, { host, inside }) : each.value);
    return value === each.value ? each : header(each.name, value);
  };
  const responseHeader = (each: Header, host: string): Header | null => {
    switch (each.lower) {
      case "location":
        return toInside.test(each.value) ? header(each.name, ownPath(each.value.replace(toInside, ""))) : each;
      case "access-control-allow-origin":
        return each.value === `http://${inside}` ? header(each.name, `http://${host}`) : each;
      case "set-cookie":
        // Programs inside must not control our cookies.
        if (each.value.trimStart().startsWith(COOKIE_PREFIX)) return null;
        return header(each.name, each.value.replace(/;\s*domain=[^;]*/gi, ""));
      default:
        return each;
    }
  };
  const eachOf = (headers: readonly Header[], host: string, change: (each: Header, host: string) => Header | null): Header[] => {
    const changed: Header[] = [];
    for (const each of headers) {
      const after = change(each, host);
      if (after !== null) changed.push(after);
    }
    return changed;
  };
  return {
    request(head, path) {
      const host = headerValue(head, "host") ?? "";
      return { method: head.method, target: hide(path), version: head.version, headers: eachOf(head.headers, host, requestHeader) };
    },
    response(head, { host, byHost }) {
      const headers = eachOf(head.headers, host, responseHeader);
      // The page's name is its key, so other sites must not learn which page led to them.
      const isPage = byHost && headerValue(head, "content-type")?.startsWith("text/html") === true;
      if (isPage && headerValue(head, "referrer-policy") === undefined) headers.push(header("Referrer-Policy", "same-origin"));
      return { version: head.version, status: head.status, reason: head.reason, headers };
    },
  };
}

function ownOriginInside(value: string, { host, inside }: { host: string; inside: string }): string {
  const scheme = value.startsWith("http://") ? 7 : value.startsWith("https://") ? 8 : 0;
  const end = scheme + host.length;
  const isOwn = scheme > 0 && value.startsWith(host, scheme) && (value.length === end || "/?#".includes(value.charAt(end)));
  return isOwn ? `http://${inside}${value.slice(end)}` : value;
}

/** A path that starts with two slashes would be another host. */
function ownPath(path: string): string {
  if (path.startsWith("//")) return `/.${path}`;
  return path.startsWith("/") ? path : `/${path}`;
}
