import { createSocket } from "node:dgram";
import { isIPv6 } from "node:net";

/** The addresses of a name. With several lists, each query gets the next list, and later queries the last. */
export type Answers = readonly string[] | readonly (readonly string[])[];

export interface Question {
  name: string;
  type: string;
}

export interface NameServer {
  /** Returns every query since the last call. */
  questions(): Question[];
  set(name: string, answers: Answers): void;
  close(): void;
}

const types: Record<number, string> = { 1: "A", 28: "AAAA", 16: "TXT", 5: "CNAME", 15: "MX", 12: "PTR", 65: "HTTPS" };

/** Starts a name server with configured answers (TTL 0) that records its queries. */
export async function startNameServer(options: { address: string; records: Readonly<Record<string, Answers>> }): Promise<NameServer> {
  const records = new Map<string, Answers>(Object.entries(options.records));
  const queryCounts = new Map<string, number>();
  let seen: Question[] = [];
  const socket = createSocket("udp4");
  socket.on("message", (message, from) => {
    const question = parse(message);
    if (question === null) return;
    seen.push({ name: question.name, type: question.type });
    const key = `${question.type} ${question.name.toLowerCase()}`;
    const before = queryCounts.get(key) ?? 0;
    queryCounts.set(key, before + 1);
    const answers = records.get(question.name.toLowerCase());
    socket.send(reply(message, question, answers === undefined ? null : nth(answers, before)), from.port, from.address);
  });
  await new Promise<void>((resolve, reject) => {
    socket.once("error", reject);
    socket.bind(53, options.address, resolve);
  });
  return {
    questions() {
      const before = seen;
      seen = [];
      return before;
    },
    set(name, answers) {
      records.set(name, answers);
      for (const key of queryCounts.keys()) if (key.endsWith(` ${name}`)) queryCounts.delete(key);
    },
    close: () => socket.close(),
  };
}

function nth(answers: Answers, index: number): readonly string[] {
  const lists = typeof answers[0] === "string" || answers.length === 0 ? [answers as readonly string[]] : (answers as readonly string[][]);
  return lists[Math.min(index, lists.length - 1)] ?? [];
}

interface Parsed extends Question {
  /** The offset at which the question ends. */
  end: number;
}

function parse(message: Buffer): Parsed | null {
  const labels: string[] = [];
  let at = 12;
  for (;;) {
    const length = message[at];
    if (length === undefined || length > 63) return null;
    at += 1;
    if (length === 0) break;
    labels.push(message.toString("latin1", at, at + length));
    at += length;
  }
  if (at + 4 > message.length) return null;
  const type = message.readUInt16BE(at);
  return { name: labels.join("."), type: types[type] ?? String(type), end: at + 4 };
}

function reply(message: Buffer, question: Parsed, addresses: readonly string[] | null): Buffer {
  const wanted = (addresses ?? []).filter((address) => (isIPv6(address) ? question.type === "AAAA" : question.type === "A"));
  const head = Buffer.from(message.subarray(0, 12));
  // Recursion is requested and available. An unknown name is NXDOMAIN.
  head.writeUInt16BE(0x8580 | (addresses === null ? 3 : 0), 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(wanted.length, 6);
  head.writeUInt32BE(0, 8);
  const answers = wanted.map((address) => {
    const data = addressBytes(address);
    const record = Buffer.alloc(12);
    record.writeUInt16BE(0xc00c, 0);
    record.writeUInt16BE(data.length === 4 ? 1 : 28, 2);
    record.writeUInt16BE(1, 4);
    record.writeUInt16BE(data.length, 10);
    return Buffer.concat([record, data]);
  });
  return Buffer.concat([head, message.subarray(12, question.end), ...answers]);
}

function addressBytes(address: string): Buffer {
  if (!isIPv6(address)) return Buffer.from(address.split(".").map(Number));
  const mapped = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(address);
  const text = mapped ? `${mapped[1]}${hex(mapped[2], mapped[3])}:${hex(mapped[4], mapped[5])}` : address;
  const [front = "", back] = text.split("::");
  const groups = (part: string) => part.split(":").filter(Boolean);
  const middle = back === undefined ? [] : Array<string>(8 - groups(front).length - groups(back).length).fill("0");
  const bytes = Buffer.alloc(16);
  [...groups(front), ...middle, ...groups(back ?? "")].forEach((group, index) => {
    bytes.writeUInt16BE(Number.parseInt(group, 16), index * 2);
  });
  return bytes;
}

function hex(high = "0", low = "0"): string {
  return (Number(high) * 256 + Number(low)).toString(16);
}
