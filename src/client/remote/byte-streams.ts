import { CaissonError } from "../../contract/error/error.ts";
import { ignore } from "../../lib/failures.ts";

/** Converts bytes to a request body. */
export function bodyOf(data: Uint8Array | AsyncIterable<Uint8Array>): Uint8Array | ReadableStream<Uint8Array> {
  if (data instanceof Uint8Array) return data;
  const iterator = data[Symbol.asyncIterator]();
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await iterator.next();
      if (done) controller.close();
      else if (value.length > 0) controller.enqueue(value);
      else await this.pull?.(controller);
    },
    cancel: async () => void (await iterator.return?.()),
  });
}

/** Yields the bytes of an answer. Throws `lost` if it breaks off midway, and `cancelled` if the signal aborts. */
export async function* bytesOf(
  stream: ReadableStream<Uint8Array>,
  { what, signal }: { what: string; signal: AbortSignal | undefined },
): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } catch (cause) {
    if (signal?.aborted) throw new CaissonError("cancelled", `${what} was cancelled`, { cause });
    throw cause instanceof CaissonError ? cause : new CaissonError("lost", `${what} broke off midway`, { cause });
  } finally {
    await ignore(reader.cancel(), "the stream is no longer read");
  }
}
