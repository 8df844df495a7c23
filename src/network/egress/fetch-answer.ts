import type { IncomingMessage } from "node:http";
import { pipeline, type Readable, type Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { CaissonError } from "../../contract/error/error.ts";
import type { ResponseHead } from "../http/head.ts";
import { header } from "../http/headers.ts";
import type { EgressSecrets } from "./egress-options.ts";

interface Answer {
  status: number;
  headers: Record<string, string>;
  body: Buffer;
  truncated: boolean;
}

/** The most content encodings that a legitimate server applies to one answer. */
const ENCODINGS_MAX = 3;

/** Reads and decompresses an answer up to a bound, with secrets redacted. Throws `unavailable` if it cannot be read. */
export async function readAnswer(
  answer: IncomingMessage,
  { bytesMax, out }: { bytesMax: number; out: ReturnType<EgressSecrets["answerRedactor"]> },
): Promise<Answer> {
  const head = headOf(answer);
  const visibleHead = out === null ? head : out.head(head);
  const headers = recordOf(visibleHead);
  const decoders = decodersFor(headers["content-encoding"]);
  if (decoders === null) throw unreadable("its content encoding is not supported");
  if (decoders.length > 0) {
    delete headers["content-encoding"];
    delete headers["content-length"];
  }
  const { body, truncated } = await readBounded(answer, [...(out === null ? [] : [out.body()]), ...decoders], bytesMax);
  return { status: visibleHead.status, headers, body, truncated };
}

async function readBounded(
  answer: IncomingMessage,
  through: readonly Transform[],
  bytesMax: number,
): Promise<{ body: Buffer; truncated: boolean }> {
  const chunks: Buffer[] = [];
  let length = 0;
  // The empty callback makes errors reach the reader of `end`.
  const end: Readable = through.length === 0 ? answer : (pipeline([answer, ...through], () => {}) as unknown as Readable);
  try {
    for await (const chunk of end as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      length += chunk.length;
      if (length > bytesMax) return { body: Buffer.concat(chunks).subarray(0, bytesMax), truncated: true };
    }
  } catch (cause) {
    throw unreadable("it is truncated or damaged", cause);
  } finally {
    answer.destroy();
  }
  return { body: Buffer.concat(chunks), truncated: false };
}

/** Returns the decoders in the order in which to apply them, or null for unknown or too many encodings. */
function decodersFor(encoding: string | undefined): Transform[] | null {
  const names = (encoding ?? "")
    .toLowerCase()
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "" && name !== "identity");
  if (names.length > ENCODINGS_MAX) return null;
  const decoders: Transform[] = [];
  for (const name of names.reverse()) {
    if (name === "gzip" || name === "x-gzip") decoders.push(createGunzip());
    else if (name === "br") decoders.push(createBrotliDecompress());
    else if (name === "deflate") decoders.push(createInflate());
    else return null;
  }
  return decoders;
}

function headOf({ statusCode = 0, statusMessage = "", rawHeaders }: IncomingMessage): ResponseHead {
  const headers = [];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) headers.push(header(rawHeaders[index] ?? "", rawHeaders[index + 1] ?? ""));
  return { version: "1.1", status: statusCode, reason: statusMessage, headers };
}

function recordOf({ headers }: ResponseHead): Record<string, string> {
  const record = new Map<string, string>();
  for (const { lower, value } of headers) {
    const known = record.get(lower);
    record.set(lower, known === undefined ? value : `${known}, ${value}`);
  }
  return Object.fromEntries(record);
}

function unreadable(why: string, cause?: unknown): CaissonError {
  return new CaissonError("unavailable", `the answer cannot be read: ${why}`, { cause });
}
