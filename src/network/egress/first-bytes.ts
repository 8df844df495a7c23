import type { Duplex } from "node:stream";
import { type ClientHello, parseClientHello } from "./client-hello.ts";

/** The outcome of waiting on a stream that has no other reader. */
export type Next = { kind: "bytes"; bytes: Buffer } | { kind: "ended" } | { kind: "silent" } | { kind: "otherSpoke" };

/**
 * Waits for the next bytes of a stream, which is paused before and afterwards. With `other`, it also returns when that
 * stream has data, and leaves its bytes in it. Never rejects: an error counts as an end.
 */
export function nextBytes(stream: Duplex, { timeoutMs, other }: { timeoutMs: number; other?: Duplex }): Promise<Next> {
  return new Promise((resolve) => {
    const settle = (next: Next) => {
      clearTimeout(timer);
      stream.off("data", took).off("end", onEnd).off("close", onEnd).off("error", onEnd);
      stream.pause();
      other?.off("data", spoke).off("end", spoke).off("close", spoke);
      other?.pause();
      resolve(next);
    };
    const took = (bytes: Buffer) => settle({ kind: "bytes", bytes });
    const onEnd = () => settle({ kind: "ended" });
    const spoke = (bytes?: Buffer) => {
      settle({ kind: "otherSpoke" });
      if (bytes !== undefined) other?.unshift(bytes);
    };
    const timer = setTimeout(() => settle({ kind: "silent" }), timeoutMs);
    if (stream.destroyed || stream.readableEnded) return onEnd();
    stream.on("end", onEnd).on("close", onEnd).on("error", onEnd).on("data", took);
    stream.resume();
    if (other === undefined) return;
    other.on("end", spoke).on("close", spoke).on("data", spoke);
    other.resume();
  });
}

/** The protocol that a client starts with. `raw` is neither TLS nor HTTP. */
export type Beginning =
  | { kind: "more" }
  | { kind: "raw" }
  | { kind: "http" }
  | { kind: "http2" }
  | { kind: "malformed" }
  | Extract<ClientHello, { kind: "hello" }>;

/** We parse all bytes again after each piece, so a flood of tiny pieces would cost us more than the sender. */
export const PIECES_MAX = 256;
const NEWLINE = 0x0a;
const TLS_HANDSHAKE = 0x16;
/** As lenient as the most lenient server: what any server accepts as HTTP must not pass as something else. */
const requestLine = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+[ \t].*[ \t]HTTP\/[0-9]+(?:\.\d*)?[ \t\r]*$/i;
/** HTTP/2 without TLS. Its requests are in frames that we do not parse. */
const http2Preface = /^PRI[ \t]+\*[ \t]+HTTP\/2/i;
const mayBecomeRequestLine = /^[A-Za-z0-9!#$%&'*+.^_`|~-]*(?:[ \t][^\0]*)?$/;

/** Classifies the bytes so far. With `bytesMax` of them it always decides. */
export function beginningOf(bytes: Buffer, { bytesMax }: { bytesMax: number }): Beginning {
  const hello = parseClientHello(bytes, bytesMax);
  if (hello.kind === "incomplete") return { kind: "more" };
  if (hello.kind !== "other") return hello;
  // Servers skip empty lines before a request.
  let start = 0;
  while (bytes[start] === 0x0d || bytes[start] === NEWLINE) start += 1;
  const end = bytes.indexOf(NEWLINE, start);
  if (end !== -1) return { kind: kindOfLine(bytes.toString("latin1", start, end)) };
  if (bytes.length >= bytesMax) return { kind: "raw" };
  return { kind: mayBecomeRequestLine.test(bytes.toString("latin1", start)) ? "more" : "raw" };
}

function kindOfLine(line: string): "http" | "http2" | "raw" {
  if (!requestLine.test(line)) return "raw";
  return http2Preface.test(line) ? "http2" : "http";
}

const SETTINGS_HEADER = Buffer.from([0x04, 0x00, 0x00, 0x00, 0x00, 0x00]);

/**
 * Checks whether a server that spoke first speaks HTTP/2: it starts with a SETTINGS frame, whose type follows three
 * length bytes.
 */
export function isHttp2Server(bytes: Buffer): boolean {
  return bytes.length >= 5 && bytes.subarray(3, 9).equals(SETTINGS_HEADER.subarray(0, Math.min(6, bytes.length - 3)));
}

/**
 * Collects a client's bytes until its protocol is clear. `wait` receives the bytes so far and returns more. If no more
 * bytes arrive, `stopped` says why.
 */
export async function readBeginning(options: {
  first: Buffer;
  bytesMax: number;
  wait: (bytes: Buffer) => Promise<Next>;
}): Promise<{ beginning: Beginning; bytes: Buffer; stopped: Exclude<Next["kind"], "bytes"> | null }> {
  let bytes = options.first;
  for (let pieces = 1; ; pieces++) {
    const beginning = pieces > PIECES_MAX ? ({ kind: "malformed" } as const) : beginningOf(bytes, options);
    if (beginning.kind !== "more") return { beginning, bytes, stopped: null };
    const next = await options.wait(bytes);
    if (next.kind !== "bytes") return { beginning, bytes, stopped: next.kind };
    bytes = Buffer.concat([bytes, next.bytes]);
  }
}

/** Checks whether the bytes could still become a ClientHello. No program pauses in the middle of one. */
export function mayBecomeTls(bytes: Buffer): boolean {
  return bytes[0] === TLS_HANDSHAKE;
}
