import { STATUS_CODES } from "node:http";
import { CaissonError } from "../../contract/error/error.ts";
import { encodeResponseHead, type RequestHead } from "./head.ts";
import { type Header, HttpSyntaxError, header } from "./headers.ts";
import { type AnswerVerdict, RelayRefusal, type TakeVerdict } from "./relay-options.ts";

/** Encodes an answer of the relay itself. If a header contains text that cannot be encoded, returns a 500 instead. */
export function localAnswer(verdict: AnswerVerdict, context: { head: RequestHead | null; close: boolean }): Buffer {
  const body = Buffer.from(verdict.body ?? "", "utf8");
  const headers = (verdict.headers ?? []).map(([name, value]) => header(name, value)).filter(({ lower }) => !isOurs(lower));
  if (body.length > 0 && !headers.some(({ lower }) => lower === "content-type"))
    headers.push(header("Content-Type", "text/plain; charset=utf-8"));
  const bodyless = verdict.status < 200 || verdict.status === 204 || verdict.status === 304;
  if (!bodyless) headers.push(header("Content-Length", String(body.length)));
  if (context.close) headers.push(header("Connection", "close"));
  else if (context.head?.version === "1.0") headers.push(header("Connection", "keep-alive"));
  try {
    const head = encodeResponseHead({ version: "1.1", status: verdict.status, reason: reasonOf(verdict), headers });
    return bodyless || context.head?.method === "HEAD" ? head : Buffer.concat([head, body]);
  } catch {
    return localAnswer({ kind: "answer", status: 500, body: "The answer could not be written.\n" }, context);
  }
}

/** Encodes the answer that precedes the raw bytes of a handed-over connection. */
export function tunnelAnswer(answer: Exclude<TakeVerdict["answer"], null>): Buffer {
  const headers: Header[] = (answer?.headers ?? []).map(([name, value]) => header(name, value));
  const status = answer?.status ?? 200;
  const reason = answer === undefined ? "Connection Established" : reasonOf(answer);
  return encodeResponseHead({ version: "1.1", status, reason, headers });
}

/**
 * Returns the answer for a client whose `decide` or `connect` threw, or whose upstream failed. Clients may see the text
 * only of errors that we threw on purpose; other errors could reveal facts about the host.
 */
export function verdictOfError(error: unknown, status: number): AnswerVerdict {
  if (error instanceof RelayRefusal) return error.verdict;
  if (error instanceof CaissonError) {
    return { kind: "answer", status: error.code === "timeout" ? 504 : status, body: `${error.sentences}\n` };
  }
  const code = (error as NodeJS.ErrnoException | null)?.code;
  return { kind: "answer", status, body: `The upstream could not be reached${typeof code === "string" ? ` (${code})` : ""}.\n` };
}

/** Converts a thrown value to an error. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

export function requestTimeout(): HttpSyntaxError {
  return new HttpSyntaxError("the request head did not arrive in time", 408);
}

function reasonOf(answer: { status: number; reason?: string }): string {
  return answer.reason ?? STATUS_CODES[answer.status] ?? "";
}

function isOurs(lower: string): boolean {
  return lower === "content-length" || lower === "connection" || lower === "transfer-encoding";
}
