import { addressBytes } from "../address/addresses.ts";
import { DNS_TYPE_A, DNS_TYPE_AAAA, encodeDnsAnswer, parseDnsQuestion } from "../address/dns-message.ts";
import { parseTargetHost, type TargetHost } from "../address/target-host.ts";

/** The names that programs inside looked up, each with an invented address that maps back to it. */
export interface FakeNames {
  /** Answers without sending a packet. Returns null for a malformed question or a name that cannot be a host. */
  answerName(question: Buffer): Buffer | null;
  /** Returns the name that an address was invented for. Null for other addresses and for names forgotten since. */
  nameOf(address: string): TargetHost | null;
}

/**
 * 198.18.0.0/15: the addresses that names get inside in transparent mode. No real host has one: the range is reserved
 * for benchmarks (RFC 2544), and egress refuses it.
 */
const IPV4_FIRST = 0xc612_0000;
const IPV4_COUNT = 2 ** 17;
/** fd63:6169:7373:6f6e::/64, a unique local prefix (RFC 4193). The last 32 bits are the number of the name. */
const IPV6_PREFIX = Buffer.from("fd63616973736f6e", "hex");
/** Short, so that few programs cache an address for longer than we remember its name. */
const TTL_SECONDS = 10;
/**
 * Skips the first and last address of each range, because some programs treat them as network and broadcast addresses.
 */
const NUMBER_FIRST = 1;
const NUMBER_LAST = IPV4_COUNT - 2;

export function createFakeNames({ namesMax }: { namesMax: number }): FakeNames {
  /** Ordered by last use. */
  const numberByName = new Map<string, number>();
  const nameByNumber = new Map<number, string>();
  let next = NUMBER_FIRST;
  const touch = (name: string, number: number) => {
    numberByName.delete(name);
    numberByName.set(name, number);
  };
  const forgetOldest = () => {
    for (const [name, number] of numberByName) {
      if (numberByName.size < Math.min(namesMax, NUMBER_LAST)) return;
      numberByName.delete(name);
      nameByNumber.delete(number);
    }
  };
  const numberOf = (name: string) => {
    const known = numberByName.get(name);
    if (known !== undefined) {
      touch(name, known);
      return known;
    }
    forgetOldest();
    // Wraps around, to reuse an address for another name as late as possible.
    while (nameByNumber.has(next)) next = next === NUMBER_LAST ? NUMBER_FIRST : next + 1;
    const number = next;
    next = next === NUMBER_LAST ? NUMBER_FIRST : next + 1;
    numberByName.set(name, number);
    nameByNumber.set(number, name);
    return number;
  };
  return {
    answerName(message) {
      const question = parseDnsQuestion(message);
      if (question === null) return null;
      if (question.type !== DNS_TYPE_A && question.type !== DNS_TYPE_AAAA) return encodeDnsAnswer(question, null);
      const host = parseTargetHost(question.name);
      // A different spelling would get an address under a name that was not requested.
      if (host === null || host.text !== question.name) return null;
      const data = question.type === DNS_TYPE_A ? ipv4Of(host, numberOf) : ipv6Of(host, numberOf);
      return encodeDnsAnswer(question, data === null ? null : { data, ttlSeconds: TTL_SECONDS });
    },
    nameOf(address) {
      const number = numberIn(address);
      if (number === null) return null;
      const name = nameByNumber.get(number);
      if (name === undefined) return null;
      touch(name, number);
      return { kind: "name", text: name };
    },
  };
}

/** Checks for loopback names, which stay inside as in every resolver (RFC 6761). */
function isLocal(host: TargetHost): boolean {
  return host.text === "localhost" || host.text.endsWith(".localhost");
}

function ipv4Of(host: TargetHost, numberOf: (name: string) => number): Buffer | null {
  if (host.kind === "address") return host.text.includes(":") ? null : Buffer.from(host.text.split(".").map(Number));
  if (isLocal(host)) return Buffer.from([127, 0, 0, 1]);
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(IPV4_FIRST + numberOf(host.text));
  return bytes;
}

function ipv6Of(host: TargetHost, numberOf: (name: string) => number): Buffer | null {
  if (host.kind === "address") return null;
  const bytes = Buffer.alloc(16);
  if (isLocal(host)) {
    bytes[15] = 1;
    return bytes;
  }
  IPV6_PREFIX.copy(bytes);
  bytes.writeUInt32BE(numberOf(host.text), 12);
  return bytes;
}

/** Returns the number of the name in one of our addresses, in any notation. */
function numberIn(address: string): number | null {
  const bytes = addressBytes(address);
  if (bytes === null) return null;
  if (bytes.length === 4) return bytes.readUInt32BE(0) - IPV4_FIRST;
  return bytes.subarray(0, 12).equals(Buffer.concat([IPV6_PREFIX, Buffer.alloc(4)])) ? bytes.readUInt32BE(12) : null;
}
