import { isIP } from "node:net";

/**
 * A host as every part of egress compares it: a name in lower case and punycode without a final dot, or an address in
 * its one canonical writing.
 */
export interface TargetHost {
  kind: "name" | "address";
  text: string;
}

export const HOST_LENGTH_MAX = 253;
const LABEL = "[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?";
const plainName = new RegExp(`^${LABEL}(?:\\.${LABEL})*$`);
/**
 * A name whose last label is a number in any notation is an address to some resolvers (`127.1`, `0x7f.1`,
 * `2130706433`), so it takes the long way.
 */
const endsLikeNumber = /(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)$/;
/**
 * `%` would be decoded, or begin a zone; the others would end the host. NUL to space, and DEL, are never part of one.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for.
const neverInHost = /[\u0000-\u0020\u007f/\\?#@%:[\]<>^|]/;

/** Null for what is no host, or could be read as two different ones. */
export function parseTargetHost(text: string): TargetHost | null {
  if (text.length === 0 || text.length > HOST_LENGTH_MAX + 1) return null;
  if (text.startsWith("[")) return text.endsWith("]") ? parseIpv6(text.slice(1, -1)) : null;
  if (text.includes(":")) return parseIpv6(text);
  if (neverInHost.test(text)) return null;
  const lower = withoutFinalDot(text.toLowerCase());
  if (plainName.test(lower) && !endsLikeNumber.test(lower) && !lower.includes("xn--")) {
    return lower.length <= HOST_LENGTH_MAX ? { kind: "name", text: lower } : null;
  }
  return parseUnusual(text);
}

/** `host:port` as in CONNECT and Host. A missing port is `defaultPort`; null where there is none and it is needed. */
export function parseAuthority(text: string, defaultPort: number | null): { host: TargetHost; port: number } | null {
  const found = /^(\[[^\]]*\]|[^:]*)(?::([0-9]{1,5}))?$/.exec(text);
  if (found === null) return null;
  const host = parseTargetHost(found[1] ?? "");
  const port = found[2] === undefined ? defaultPort : Number(found[2]);
  if (host === null || port === null || port < 1 || port > 65_535) return null;
  return { host, port };
}

/** As in a URL or a Host header. */
export function authorityText(host: TargetHost, port: number, defaultPort: number): string {
  const text = host.text.includes(":") ? `[${host.text}]` : host.text;
  return port === defaultPort ? text : `${text}:${port}`;
}

function withoutFinalDot(text: string): string {
  return text.endsWith(".") ? text.slice(0, -1) : text;
}

/** Non-ASCII names and addresses in odd notations, read as browsers and the C library read them. */
function parseUnusual(text: string): TargetHost | null {
  let hostname: string;
  try {
    hostname = new URL(`http://${text}/`).hostname;
  } catch {
    return null;
  }
  if (isIP(hostname) === 4) return { kind: "address", text: hostname };
  const name = withoutFinalDot(hostname);
  // Some C libraries read `0x7f.1.` with its final dot, or `08.1`, as an address although a URL does not.
  if (name.length > HOST_LENGTH_MAX || !plainName.test(name) || endsLikeNumber.test(name)) return null;
  return { kind: "name", text: name };
}

function parseIpv6(text: string): TargetHost | null {
  if (text.includes("%") || isIP(text) !== 6) return null;
  const canonical = new URL(`http://[${text}]/`).hostname.slice(1, -1);
  const mapped = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(canonical);
  if (mapped === null) return { kind: "address", text: canonical };
  // The operating system connects to a mapped address by IPv4, so that is what it is.
  const high = Number.parseInt(mapped[1] ?? "", 16);
  const low = Number.parseInt(mapped[2] ?? "", 16);
  return { kind: "address", text: [high >> 8, high & 255, low >> 8, low & 255].join(".") };
}
