/** One question, as a stub resolver asks it. */
export interface DnsQuestion {
  id: number;
  /** In lower case, without the trailing dot. Empty for the root. */
  name: string;
  type: number;
  recursionDesired: boolean;
  /** The question section as received: some clients randomize the case and compare it with the answer. */
  section: Buffer;
}

export const DNS_TYPE_A = 1;
export const DNS_TYPE_AAAA = 28;

const HEADER_BYTES = 12;
const MESSAGE_BYTES_MAX = 4096;
const NAME_BYTES_MAX = 255;
const LABEL_BYTES_MAX = 63;
const CLASS_IN = 1;
const TYPE_OPT = 41;
/** Bits that must be zero in a query: QR, opcode, AA, TC, RA, Z and RCODE. RD, AD and CD may be set. */
const FLAGS_OF_ANSWERS = 0b1111_1110_1100_1111;
const FLAG_RECURSION_DESIRED = 0x0100;
const FLAG_RESPONSE = 0x8000;
const FLAG_RECURSION_AVAILABLE = 0x0080;

/** Returns null for anything but a plain query with one question and at most one OPT record after it. */
export function parseDnsQuestion(message: Buffer): DnsQuestion | null {
  if (message.length < HEADER_BYTES + 5 || message.length > MESSAGE_BYTES_MAX) return null;
  const flags = message.readUInt16BE(2);
  if ((flags & FLAGS_OF_ANSWERS) !== 0) return null;
  const [questions, answers, authorities, additional] = [4, 6, 8, 10].map((at) => message.readUInt16BE(at));
  if (questions !== 1 || answers !== 0 || authorities !== 0 || (additional ?? 0) > 1) return null;
  const name = readName(message, HEADER_BYTES);
  if (name === null || name.end + 4 > message.length) return null;
  const end = name.end + 4;
  if (message.readUInt16BE(name.end + 2) !== CLASS_IN) return null;
  if (additional === 1 ? !isOptRecord(message.subarray(end)) : end !== message.length) return null;
  return {
    id: message.readUInt16BE(0),
    name: name.text,
    type: message.readUInt16BE(name.end),
    recursionDesired: (flags & FLAG_RECURSION_DESIRED) !== 0,
    section: message.subarray(HEADER_BYTES, end),
  };
}

/** Encodes a successful response. An `answer` of null means that the name has no record of this type. */
export function encodeDnsAnswer(question: DnsQuestion, answer: { data: Buffer; ttlSeconds: number } | null): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt16BE(question.id, 0);
  header.writeUInt16BE(FLAG_RESPONSE | FLAG_RECURSION_AVAILABLE | (question.recursionDesired ? FLAG_RECURSION_DESIRED : 0), 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(answer === null ? 0 : 1, 6);
  if (answer === null) return Buffer.concat([header, question.section]);
  const record = Buffer.alloc(12);
  record.writeUInt16BE(0xc000 | HEADER_BYTES, 0); // Pointer to the question's name
  record.writeUInt16BE(question.type, 2);
  record.writeUInt16BE(CLASS_IN, 4);
  record.writeUInt32BE(answer.ttlSeconds, 6);
  record.writeUInt16BE(answer.data.length, 10);
  return Buffer.concat([header, question.section, record, answer.data]);
}

/** Reads an uncompressed name: before a question there is no name that a pointer could refer to. */
function readName(message: Buffer, start: number): { text: string; end: number } | null {
  const labels: string[] = [];
  for (let at = start; at < message.length && at - start < NAME_BYTES_MAX; ) {
    const length = message[at] as number;
    at += 1;
    if (length === 0) return { text: labels.join("."), end: at };
    if (length > LABEL_BYTES_MAX || at + length > message.length) return null;
    const label = message.toString("latin1", at, at + length).toLowerCase();
    if (label.includes(".")) return null;
    labels.push(label);
    at += length;
  }
  return null;
}

function isOptRecord(bytes: Buffer): boolean {
  return bytes.length >= 11 && bytes[0] === 0 && bytes.readUInt16BE(1) === TYPE_OPT && bytes.readUInt16BE(9) === bytes.length - 11;
}
