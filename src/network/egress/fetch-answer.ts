import type { IncomingMessage } from "node:http";
import { pipeline, type Readable, type Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { CaissonError } from "../../contract/error.ts";
import type { ResponseHead } from "../http/head.ts";
import { header } from "../http/headers.ts";
import type { EgressSecrets } from "./egress-options.ts";

interface Answer {
  status: number;
  headers: Record<string, string>;
  body: Buffer;
  truncated: boolean;
}

/** As many as anybody stacks in earnest. */
const ENCODINGS_MAX = 3;

/** Reads an answer up to a bound, decompressed, with secrets redacted. Throws `unavailable` when it breaks off. */
export async function readAnswer(
  answer: IncomingMessage,
  { bytesMax, out }: { bytesMax: number; out: ReturnType<EgressSecrets["answerRedactor"]> },
): Promise<Answer> {
  const head = headOf(answer);
  const shown = out === null ? head : out.head(head);
  const headers = recordOf(shown);
  const decoders = decodersFor(headers["content-encoding"]);
  if (decoders === null) throw unreadable("its encoding is not known");
  if (decoders.length > 0) {
    delete headers["content-encoding"];
    delete headers["content-length"];
  }
  const { body, truncated } = await readBounded(answer, [...(out === null ? [] : [out.body()]), ...decoders], bytesMax);
  return { status: shown.status, headers, body, truncated };
}

async function readBounded(
  answer: IncomingMessage,
  through: readonly Transform[],
  bytesMax: number,
): Promise<{ body: Buffer; truncated: boolean }> {
  const chunks: Buffer[] = [];
  let length = 0;
  // The callback is there so that errors go to whoever reads the end.
  const end: Readable = through.length === 0 ? answer : (pipeline([answer, ...through], () => {}) as unknown as Readable);
  try {
    for await (const chunk of end as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      length += chunk.length;
      if (length > bytesMax) return { body: Buffer.concat(chunks).subarray(0, bytesMax), truncated: true };
    }
  } catch (cause) {
    throw unreadable("it broke off or is damaged", cause);
  } finally {
    answer.destroy();
  }
  return { body: Buffer.concat(chunks), truncated: false };
}

/** In the order in which they undo what was done; null for one that is not known. */
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
