import { isIP } from "node:net";

/**
 * A host in the form that all parts of egress compare: a name in lower case and punycode without a trailing dot, or an
 * address in canonical form.
 */
export interface TargetHost {
  kind: "name" | "address";
  text: string;
}

export const HOST_LENGTH_MAX = 253;
const LABEL = "[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?";
const plainName = new RegExp(`^${LABEL}(?:\\.${LABEL})*$`);
/**
 * Some resolvers treat a name whose last label is a number in any notation as an address (`127.1`, `0x7f.1`,
 * `2130706433`), so `parseUnusual` handles it.
 */
const endsLikeNumber = /(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)$/;
/**
 * Characters that cannot occur in a host. `%` would be decoded or start a zone, and the other punctuation would end the
 * host. NUL to space and DEL are never valid.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern looks for control characters.
const neverInHost = /[\u0000-\u0020\u007f/\\?#@%:[\]<>^|]/;

/** Returns null for text that is not a host, or that could be read as two different hosts. */
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

/** Formats a host and port as in a URL or a Host header. */
export function authorityText(host: TargetHost, port: number, defaultPort: number): string {
  const text = host.text.includes(":") ? `[${host.text}]` : host.text;
  return port === defaultPort ? text : `${text}:${port}`;
}

function withoutFinalDot(text: string): string {
  return text.endsWith(".") ? text.slice(0, -1) : text;
}

/** Parses non-ASCII names and addresses in unusual notations the way browsers and the C library do. */
function parseUnusual(text: string): TargetHost | null {
  const hostname = URL.parse(`http://${text}/`)?.hostname;
  if (hostname === undefined) return null;
  if (isIP(hostname) === 4) return { kind: "address", text: hostname };
  const name = withoutFinalDot(hostname);
  // Some C libraries read `0x7f.1.` (with the trailing dot) or `08.1` as an address, although a URL does not.
  if (name.length > HOST_LENGTH_MAX || !plainName.test(name) || endsLikeNumber.test(name)) return null;
  return { kind: "name", text: name };
}

function parseIpv6(text: string): TargetHost | null {
  if (text.includes("%") || isIP(text) !== 6) return null;
  const canonical = new URL(`http://[${text}]/`).hostname.slice(1, -1);
  const mapped = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(canonical);
  if (mapped === null) return { kind: "address", text: canonical };
  // The operating system connects to a mapped address over IPv4, so we treat it as IPv4.
  const high = Number.parseInt(mapped[1] ?? "", 16);
  const low = Number.parseInt(mapped[2] ?? "", 16);
  return { kind: "address", text: [high >> 8, high & 255, low >> 8, low & 255].join(".") };
}
