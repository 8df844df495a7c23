import type { RequestHead } from "./head.ts";
import { HttpSyntaxError } from "./http-syntax-error.ts";

/** Where a request wants to go, from its target and its Host, which never disagree. */
export interface RequestTarget {
  form: "origin" | "absolute" | "authority" | "asterisk";
  /** Only the absolute form says it. */
  scheme: "http" | "https" | null;
  /** In lower case, without brackets; a final dot stays. Empty only for HTTP/1.0 without a Host. */
  host: string;
  /** Null where none was written. */
  port: number | null;
  /** What is sent to the origin: begins with `/`, or is `*`; empty for the authority form. As sent: nothing is decoded or normalised. */
  path: string;
}

const AUTHORITY = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::([0-9]{1,5}))?$/;
const ABSOLUTE = /^([A-Za-z][A-Za-z0-9+.-]*):\/\/([^/?]*)(.*)$/s;

/** Throws `HttpSyntaxError` for a form that does not fit the method, for credentials in the target, and for a Host that is not the target's. */
export function requestTarget(head: RequestHead): RequestTarget {
  const { method, target } = head;
  const host = hostOf(head);
  if (method === "CONNECT") {
    const { name, port } = authority(target, "the target of CONNECT");
    if (port === null) throw new HttpSyntaxError("the target of CONNECT has no port");
    return { form: "authority", scheme: null, host: name, port, path: "" };
  }
  if (target.charCodeAt(0) === 0x2f) return { form: "origin", scheme: null, host: host.name, port: host.port, path: target };
  if (target === "*") {
    if (method !== "OPTIONS") throw new HttpSyntaxError("the target * is for OPTIONS only");
    return { form: "asterisk", scheme: null, host: host.name, port: host.port, path: "*" };
  }
  const match = ABSOLUTE.exec(target);
  if (match === null) throw new HttpSyntaxError("the target is neither a path nor a URL");
  const scheme = (match[1] as string).toLowerCase();
  if (scheme !== "http" && scheme !== "https") throw new HttpSyntaxError("the target's scheme is neither http nor https");
  const { name, port } = authority(match[2] as string, "the target's host");
  const usual = scheme === "http" ? 80 : 443;
  // Two names in one request are how a denied host is reached through an allowed one.
  if (head.version === "1.1" || host.name !== "") {
    if (host.name !== name || (host.port ?? usual) !== (port ?? usual)) throw new HttpSyntaxError("the Host is not the target's");
  }
  const rest = match[3] as string;
  const path = rest === "" && method === "OPTIONS" ? "*" : rest.startsWith("/") ? rest : `/${rest}`;
  return { form: "absolute", scheme, host: name, port, path };
}

const none = { name: "", port: null };

function hostOf(head: RequestHead): { name: string; port: number | null } {
  for (const { lower, value } of head.headers) if (lower === "host") return authority(value, "the Host");
  return none;
}

function authority(text: string, what: string): { name: string; port: number | null } {
  const match = AUTHORITY.exec(text);
  if (match === null) throw new HttpSyntaxError(`${what} is not a host with an optional port`);
  const name = (match[1] ?? match[2] ?? "").toLowerCase();
  if (match[3] === undefined) return { name, port: null };
  const port = Number(match[3]);
  if (port < 1 || port > 65_535) throw new HttpSyntaxError(`${what} has a port that does not exist`);
  return { name, port };
}
