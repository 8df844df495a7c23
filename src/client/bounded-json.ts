import { CaissonError } from "../contract/error/error.ts";
import { ignore } from "../lib/failures.ts";
import type { Answer } from "./request.ts";

/** Larger than any legitimate answer. A hostile station could send without end. */
const JSON_BYTES_MAX = 64 * 1024 * 1024;

/** Reads a JSON answer. Throws `protocol` if it exceeds the bound. */
export async function boundedJson(answer: Answer): Promise<unknown> {
  // Our own kind of answer is bounded where it is read, without a web stream.
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
    void ignore(reader.cancel(), "the answer is complete, or its error is thrown");
  }
}

/** Returns a counter that throws `protocol` past the bound. */
export function byteCounter(): (bytes: number) => void {
  let total = 0;
  return (bytes) => {
    total += bytes;
    if (total > JSON_BYTES_MAX) throw new CaissonError("protocol", `the station's answer is longer than ${JSON_BYTES_MAX} bytes`);
  };
}

function isFetched(answer: object): boolean {
  const { headers } = answer as { headers?: { get?: unknown } };
  return typeof headers?.get === "function";
}
