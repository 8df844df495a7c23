/** The parsed first message of a TLS client, which is not encrypted. */
export type ClientHello =
  /** More bytes are needed to decide. */
  | { kind: "incomplete" }
  /** Not TLS 1.0 to 1.3. */
  | { kind: "other" }
  /** Begins as TLS but continues in a way that no real client does, so we cannot determine the requested host. */
  | { kind: "malformed" }
  /**
   * `serverName` is in lower case without a trailing dot, or null if none was sent. With Encrypted ClientHello it is
   * the outer name.
   */
  | { kind: "hello"; serverName: string | null };

const RECORD_HANDSHAKE = 22;
const RECORD_HEADER_BYTES = 5;
const RECORD_BYTES_MAX = 16_384;
const HANDSHAKE_CLIENT_HELLO = 1;
const HANDSHAKE_HEADER_BYTES = 4;
const EXTENSION_SERVER_NAME = 0;
const NAME_TYPE_HOST = 0;

const incomplete = { kind: "incomplete" } as const;
const malformed = { kind: "malformed" } as const;

/**
 * Parses the part of a ClientHello that has arrived, across any number of records. Ignores the bytes after it. Strict:
 * a message that two parsers could read differently (two names, inconsistent lengths) is malformed.
 */
export function parseClientHello(bytes: Buffer, bytesMax: number): ClientHello {
  if (bytes.length > 0 && bytes[0] !== RECORD_HANDSHAKE) return { kind: "other" };
  if (bytes.length > 1 && bytes[1] !== 3) return { kind: "other" };
  const message = handshakeMessage(bytes, bytesMax);
  if (!Buffer.isBuffer(message)) return message;
  const serverName = serverNameIn(message);
  return serverName === undefined ? malformed : { kind: "hello", serverName };
}

/** Reassembles the body of the first handshake message from its records. */
function handshakeMessage(bytes: Buffer, bytesMax: number): Buffer | ClientHello {
  const parts: Buffer[] = [];
  let have = 0;
  let need = HANDSHAKE_HEADER_BYTES;
  for (let at = 0; have < need; ) {
    if (at > bytesMax) return malformed;
    if (bytes.length < at + RECORD_HEADER_BYTES) return bytes.length > bytesMax ? malformed : incomplete;
    if (bytes[at] !== RECORD_HANDSHAKE || bytes[at + 1] !== 3) return malformed;
    const length = bytes.readUInt16BE(at + 3);
    // With empty records, a client could keep sending without ever completing the message.
    if (length === 0 || length > RECORD_BYTES_MAX) return malformed;
    const part = bytes.subarray(at + RECORD_HEADER_BYTES, at + RECORD_HEADER_BYTES + length);
    parts.push(part);
    have += part.length;
    if (need === HANDSHAKE_HEADER_BYTES && have >= HANDSHAKE_HEADER_BYTES) {
      const head = Buffer.concat(parts);
      if (head[0] !== HANDSHAKE_CLIENT_HELLO) return malformed;
      need = HANDSHAKE_HEADER_BYTES + head.readUIntBE(1, 3);
      if (need > bytesMax) return malformed;
    }
    at += RECORD_HEADER_BYTES + length;
    if (part.length < length && have < need) return bytes.length > bytesMax ? malformed : incomplete;
  }
  return Buffer.concat(parts).subarray(HANDSHAKE_HEADER_BYTES, need);
}

/** Returns undefined for a malformed message. */
function serverNameIn(message: Buffer): string | null | undefined {
  const reader = createReader(message);
  reader.skip(2 + 32);
  reader.vector(1); // Session
  reader.vector(2); // Cipher suites
  reader.vector(1); // Compression methods
  if (reader.hasFailed()) return undefined;
  if (reader.atEnd()) return null;
  const extensions = createReader(reader.vector(2));
  if (reader.hasFailed() || !reader.atEnd()) return undefined;
  let name: string | null = null;
  while (!extensions.atEnd()) {
    const type = extensions.number(2);
    const data = extensions.vector(2);
    if (extensions.hasFailed()) return undefined;
    if (type !== EXTENSION_SERVER_NAME) continue;
    const found = hostNameIn(data);
    if (found === undefined || name !== null) return undefined;
    name = found;
  }
  return name;
}

function hostNameIn(data: Buffer): string | undefined {
  const outer = createReader(data);
  const list = createReader(outer.vector(2));
  const type = list.number(1);
  const bytes = list.vector(2);
  if (outer.hasFailed() || !outer.atEnd() || list.hasFailed() || !list.atEnd() || type !== NAME_TYPE_HOST) return undefined;
  const name = bytes.toString("latin1").toLowerCase().replace(/\.$/, "");
  return /^[a-z0-9_.-]{1,253}$/.test(name) ? name : undefined;
}

interface Reader {
  skip(count: number): void;
  number(bytes: 1 | 2): number;
  /**
   * Reads a length prefix of this many bytes, and returns the bytes that follow it. Returns no bytes once a read has
   * failed.
   */
  vector(lengthBytes: 1 | 2): Buffer;
  atEnd(): boolean;
  hasFailed(): boolean;
}

function createReader(bytes: Buffer): Reader {
  let at = 0;
  let bad = false;
  const take = (count: number): Buffer => {
    if (bad || at + count > bytes.length) {
      bad = true;
      return Buffer.alloc(0);
    }
    at += count;
    return bytes.subarray(at - count, at);
  };
  const number = (count: 1 | 2) => {
    const slice = take(count);
    return bad ? 0 : slice.readUIntBE(0, count);
  };
  return {
    skip: (count) => void take(count),
    number,
    vector: (lengthBytes) => take(number(lengthBytes)),
    atEnd: () => bad || at === bytes.length,
    hasFailed: () => bad,
  };
}

/** A fatal `unrecognized_name` alert in plain text, so that a refused client sees more than a reset. */
export const REFUSED_BY_NAME_ALERT: Buffer = Buffer.from([21, 3, 3, 0, 2, 2, 112]);
/** A fatal `access_denied`. */
export const ACCESS_DENIED_ALERT: Buffer = Buffer.from([21, 3, 3, 0, 2, 2, 49]);
