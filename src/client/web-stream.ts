import type { IncomingMessage } from "node:http";

/** How much to buffer for a reader that is slower than the connection. */
const AHEAD_BYTES = 256 * 1024;

/** Converts the body of an answer to a web stream. Node's own adapter copies every piece. */
export function webStreamOf(answer: IncomingMessage): ReadableStream<Uint8Array> {
  let isOver = false;
  const ahead = { highWaterMark: AHEAD_BYTES, size: (chunk?: Uint8Array) => chunk?.byteLength ?? 0 };
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const end = (how: () => void) => {
          if (!isOver) how();
          isOver = true;
        };
        answer.on("data", (chunk: Buffer) => {
          if (isOver) return;
          controller.enqueue(new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength));
          if ((controller.desiredSize ?? 0) <= 0) answer.pause();
        });
        answer.on("error", (error) => end(() => controller.error(error)));
        answer.once("end", () => end(() => controller.close()));
        answer.once("close", () => end(() => controller.error(new Error("the connection was closed before the end"))));
      },
      pull: () => void answer.resume(),
      cancel(reason: unknown) {
        isOver = true;
        answer.destroy(reason instanceof Error ? reason : undefined);
      },
    },
    ahead,
  );
}
