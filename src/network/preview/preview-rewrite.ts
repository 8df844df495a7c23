import { type Header, header, headerValue, type RequestHead, type ResponseHead } from "../http/head.ts";
import { COOKIE_PREFIX } from "./preview-access.ts";

/** What changes between the browser's view of a preview and the program's: names only. */
export interface PreviewRewrite {
  /** As the program would be asked by somebody beside it. Neither the token nor our cookies are in it. */
  request(head: RequestHead, path: string): RequestHead;
  /** As the browser must see it; `host` is by which name it asked. */
  response(head: ResponseHead, asked: { host: string; byHost: boolean }): ResponseHead;
}

export function createPreviewRewrite(options: { token: string; port: number }): PreviewRewrite {
  const { token, port } = options;
  const inside = port === 80 ? "localhost" : `localhost:${port}`;
  const ownName = new RegExp(`${token}\\.localhost(?:(:|%3a)\\d+)?`, "gi");
  const toInside = new RegExp(
    `^https?://(?:localhost|127\\.0\\.0\\.1|\\[::1\\]|0\\.0\\.0\\.0)${port === 80 ? "(?::80)?" : `:${port}`}(?=[/?#]|$)`,
    "i",
  );
  /** Wherever a program on the page put its own address. */
  const hide = (text: string) =>
    text.includes(token) ? text.replace(ownName, (_, colon = ":") => `localhost${colon}${port}`).replaceAll(token, "token") : text;

  const requestHeader = (each: Header, host: string): Header[] => {
    if (each.lower === "host") return [header(each.name, inside)];
    if (each.lower === "cookie") {
      const rest = each.value.split(";").filter((part) => !part.trim().startsWith(COOKIE_PREFIX));
      return rest.length === 0 ? [] : [header(each.name, hide(rest.join(";").trim()))];
    }
    if (each.lower === "origin" || each.lower === "referer")
      return [header(each.name, hide(ownOriginInside(each.value, { host, inside })))];
    const hidden = hide(each.value);
    return hidden === each.value ? [each] : [header(each.name, hidden)];
  };
  const responseHeader = (each: Header, host: string): Header[] => {
    switch (each.lower) {
      case "location":
        return [header(each.name, toInside.test(each.value) ? ownPath(each.value.replace(toInside, "")) : each.value)];
      case "access-control-allow-origin":
        return [header(each.name, each.value === `http://${inside}` ? `http://${host}` : each.value)];
      case "set-cookie":
        // Nobody inside decides about our cookies.
        if (each.value.trimStart().startsWith(COOKIE_PREFIX)) return [];
        return [header(each.name, each.value.replace(/;\s*domain=[^;]*/gi, ""))];
      default:
        return [each];
    }
  };
  return {
    request(head, path) {
      const host = headerValue(head, "host") ?? "";
      return { ...head, target: hide(path), headers: head.headers.flatMap((each) => requestHeader(each, host)) };
    },
    response(head, { host, byHost }) {
      const headers = head.headers.flatMap((each) => responseHeader(each, host));
      // The page's name is the key to it: other sites need not know by which page they were reached.
      const isPage = byHost && headerValue(head, "content-type")?.startsWith("text/html") === true;
      if (isPage && headerValue(head, "referrer-policy") === undefined) headers.push(header("Referrer-Policy", "same-origin"));
      return { ...head, headers };
    },
  };
}

function ownOriginInside(value: string, { host, inside }: { host: string; inside: string }): string {
  const match = /^https?:\/\/([^/?#]*)/.exec(value);
  return match !== null && match[1] === host ? `http://${inside}${value.slice(match[0].length)}` : value;
}

/** Two slashes at the beginning would be another host. */
function ownPath(path: string): string {
  if (path.startsWith("//")) return `/.${path}`;
  return path.startsWith("/") ? path : `/${path}`;
}
