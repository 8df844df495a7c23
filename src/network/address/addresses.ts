import { isIP } from "node:net";

/**
 * The kind of an address, which decides how a sandbox may reach it. `public`: if the policy allows its name.
 * `loopback`, `private` and `own` (the host itself): only by a rule with `private`. All others: never, because no
 * program needs them and metadata services hand out the host's credentials.
 */
export type AddressKind = "public" | "loopback" | "private" | "own" | "link_local" | "metadata" | "unspecified" | "multicast" | "reserved";

export type AddressReach = "public" | "private" | "never";

export function reachOf(kind: AddressKind): AddressReach {
  if (kind === "public") return "public";
  return kind === "loopback" || kind === "private" || kind === "own" ? "private" : "never";
}

/**
 * Classifies an address. `own` holds the host's addresses in canonical form. Text that is not an address is `reserved`.
 */
export function classifyAddress(address: string, own: ReadonlySet<string>): AddressKind {
  const family = isIP(address);
  if (family === 0 || address.includes("%")) return "reserved";
  const bytes = family === 4 ? ipv4Bytes(address) : ipv6Bytes(address);
  const kind = family === 4 ? classifyIpv4(bytes) : classifyIpv6(bytes);
  if (reachOf(kind) === "never") return kind;
  const isOwn = own.has(canonicalOf(bytes)) || (family === 6 && embeddedIpv4(bytes).some((inner) => own.has(canonicalOf(inner))));
  return isOwn ? "own" : kind;
}

/** Returns the canonical spelling of an address without its zone, or null for other text. Mapped IPv4 becomes IPv4. */
export function canonicalAddress(address: string): string | null {
  const plain = address.replace(/%.*$/, "");
  const family = isIP(plain);
  if (family === 0) return null;
  return canonicalOf(family === 4 ? ipv4Bytes(plain) : ipv6Bytes(plain));
}

/** Returns four or sixteen bytes, or null for text that is not an address. */
export function addressBytes(address: string): Buffer | null {
  const family = address.includes("%") ? 0 : isIP(address);
  if (family === 0) return null;
  return Buffer.from(family === 4 ? ipv4Bytes(address) : ipv6Bytes(address));
}

type Range = [first: readonly number[], prefixBits: number, kind: AddressKind];

/** The first match decides, so a metadata address precedes the range that contains it. */
const ipv4Ranges: readonly Range[] = [
  [[169, 254, 169, 254], 32, "metadata"],
  [[100, 100, 100, 200], 32, "metadata"], // Alibaba
  [[192, 0, 0, 192], 32, "metadata"], // Oracle
  [[168, 63, 129, 16], 32, "metadata"], // Azure
  [[0, 0, 0, 0], 8, "unspecified"],
  [[127, 0, 0, 0], 8, "loopback"],
  [[10, 0, 0, 0], 8, "private"],
  [[172, 16, 0, 0], 12, "private"],
  [[192, 168, 0, 0], 16, "private"],
  [[100, 64, 0, 0], 10, "private"], // Carriers, Kubernetes, Tailscale
  [[169, 254, 0, 0], 16, "link_local"],
  [[192, 0, 0, 0], 24, "reserved"],
  [[198, 18, 0, 0], 15, "reserved"], // Benchmarks, and the addresses that we invent in transparent mode
  [[224, 0, 0, 0], 4, "multicast"],
  [[255, 255, 255, 255], 32, "reserved"],
  [[240, 0, 0, 0], 4, "private"], // Unassigned, used inside some networks
];

const ipv6Ranges: readonly Range[] = [
  [[0xfd, 0x00, 0x0e, 0xc2], 32, "metadata"], // Amazon
  [[0xfd, 0x20, 0x00, 0xce], 32, "metadata"], // Google
  [[0xfe, 0x80], 10, "link_local"],
  [[0xfe, 0xc0], 10, "private"], // Deprecated site-local addresses
  [[0xfc], 7, "private"],
  [[0xff], 8, "multicast"],
  [[0x01, 0x00, 0, 0, 0, 0, 0, 0], 64, "reserved"], // Discard prefix
];

function classifyIpv4(bytes: readonly number[]): AddressKind {
  return ipv4Ranges.find((range) => within(bytes, range))?.[2] ?? "public";
}

function classifyIpv6(bytes: readonly number[]): AddressKind {
  if (bytes.every((byte) => byte === 0)) return "unspecified";
  if (bytes.slice(0, 15).every((byte) => byte === 0) && bytes[15] === 1) return "loopback";
  const kind = ipv6Ranges.find((range) => within(bytes, range))?.[2];
  if (kind !== undefined) return kind;
  if (within(bytes, [[0x00, 0x64, 0xff, 0x9b, 0x00, 0x01], 48, "private"])) return classifyLocalNat64(bytes);
  // A gateway or tunnel may forward the packet to the embedded IPv4 address, so that address decides.
  const embedded = embeddedIpv4(bytes).map(classifyIpv4);
  return embedded.find((inner) => reachOf(inner) === "never") ?? embedded.find((inner) => inner !== "public") ?? "public";
}

function embeddedIpv4(bytes: readonly number[]): number[][] {
  const last = bytes.slice(12);
  const starts = (...prefix: number[]) => prefix.every((byte, index) => bytes[index] === byte);
  const zeros = (count: number) => bytes.slice(0, count).every((byte) => byte === 0);
  const found: number[][] = [];
  if (zeros(12)) found.push(last); // Compatible, ::a.b.c.d
  if (zeros(10) && bytes[10] === 0xff && bytes[11] === 0xff) found.push(last); // Mapped, ::ffff:a.b.c.d
  if (zeros(8) && bytes[8] === 0xff && bytes[9] === 0xff && bytes[10] === 0 && bytes[11] === 0) found.push(last); // Translated, ::ffff:0:a.b.c.d
  if (starts(0x00, 0x64, 0xff, 0x9b, 0, 0)) found.push(last); // NAT64
  if (starts(0x20, 0x02)) found.push(bytes.slice(2, 6)); // 6to4
  if (starts(0x20, 0x01, 0, 0))
    found.push(
      bytes.slice(4, 8),
      last.map((byte) => byte ^ 0xff),
    ); // Teredo: its server and its client
  if ((bytes[8] === 0 || bytes[8] === 2) && bytes[9] === 0 && bytes[10] === 0x5e && bytes[11] === 0xfe) found.push(last); // ISATAP
  return found;
}

/**
 * Each network chooses its own local NAT64 prefixes, so these addresses are at least private. In RFC 6052, the position
 * of the IPv4 address depends on the prefix length (/48, /56, /64 or /96, around a byte that stays zero), so we check
 * every position.
 */
function classifyLocalNat64(bytes: readonly number[]): AddressKind {
  const at = (...indexes: number[]) => classifyIpv4(indexes.map((index) => bytes[index] ?? 0));
  const kinds = [at(6, 7, 9, 10), at(7, 9, 10, 11), at(9, 10, 11, 12), at(12, 13, 14, 15)];
  // Unused positions hold zeros, so `unspecified` does not count.
  return kinds.find((kind) => reachOf(kind) === "never" && kind !== "unspecified") ?? "private";
}

function within(bytes: readonly number[], [first, prefixBits]: Range): boolean {
  for (let bit = 0; bit < prefixBits; bit += 8) {
    const mask = prefixBits - bit >= 8 ? 0xff : (0xff << (8 - (prefixBits - bit))) & 0xff;
    const index = bit / 8;
    if (((bytes[index] ?? 0) & mask) !== ((first[index] ?? 0) & mask)) return false;
  }
  return true;
}

function ipv4Bytes(address: string): number[] {
  return address.split(".").map(Number);
}

function ipv6Bytes(address: string): number[] {
  const dotted = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(address);
  const [, before = "", a = "", b = "", c = "", d = ""] = dotted ?? [];
  const hex = dotted === null ? address : `${before}${pair(a, b)}:${pair(c, d)}`;
  const [head = "", tail] = hex.split("::");
  const left = words(head);
  const right = tail === undefined ? [] : words(tail);
  const middle = tail === undefined ? [] : new Array<number>(8 - left.length - right.length).fill(0);
  return [...left, ...middle, ...right].flatMap((word) => [word >> 8, word & 0xff]);
}

function pair(high: string, low: string): string {
  return (Number(high) * 256 + Number(low)).toString(16);
}

function words(text: string): number[] {
  return text === "" ? [] : text.split(":").map((word) => Number.parseInt(word, 16));
}

function canonicalOf(bytes: readonly number[]): string {
  if (bytes.length === 4) return bytes.join(".");
  if (bytes.slice(0, 10).every((byte) => byte === 0) && bytes[10] === 0xff && bytes[11] === 0xff) return bytes.slice(12).join(".");
  const groups: string[] = [];
  for (let index = 0; index < 16; index += 2) groups.push((((bytes[index] ?? 0) << 8) | (bytes[index + 1] ?? 0)).toString(16));
  return new URL(`http://[${groups.join(":")}]/`).hostname.slice(1, -1);
}
