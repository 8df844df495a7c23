import { CaissonError } from "../contract/error.ts";
import type { Answer } from "./request.ts";

/** More than any answer of ours has; a station could send without end. */
const JSON_BYTES_MAX = 64 * 1024 * 1024;

/** Of an answer that is JSON. Throws `protocol` for one that is longer than any of a station. */
export async function boundedJson(answer: Answer): Promise<unknown> {
  // What our own requests give is bounded where it is read, without a stream of the web.
  if (!isFetched(answer) || answer.body === null) return answer.json();
  const decoder = new TextDecoder();
  const count = byteCounter();
  let text = "";
  const reader = answer.body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return JSON.parse(text + decoder.decode());
      count(value.length);
      text += decoder.decode(value, { stream: true });
    }
  } finally {
    void reader.cancel().catch(() => undefined);
  }
}

/** Throws `protocol` past the bound. */
export function byteCounter(): (bytes: number) => void {
  let total = 0;
  return (bytes) => {
    total += bytes;
    if (total > JSON_BYTES_MAX) throw new CaissonError("protocol", `the answer of the station is longer than ${JSON_BYTES_MAX} bytes`);
  };
}

function isFetched(answer: object): boolean {
  const { headers } = answer as { headers?: { get?: unknown } };
  return typeof headers?.get === "function";
}
