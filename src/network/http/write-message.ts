import type { Writable } from "node:stream";

/**
 * Up to this size, appending a body to its head is cheaper than a second write. Text is cheaper than bytes, because a
 * socket accepts it directly.
 */
const JOINED_BYTES_MAX = 16_384;
export const NOTHING: Buffer = Buffer.alloc(0);

/**
 * Writes a head and the available part of its body, in one write if that is cheap. Returns false if the stream wants a
 * pause.
 */
export function writeMessage(stream: Writable, head: string, body: Buffer): boolean {
  if (body.length === 0) return stream.write(head, "latin1");
  if (body.length <= JOINED_BYTES_MAX) return stream.write(head + body.toString("latin1"), "latin1");
  stream.cork();
  stream.write(head, "latin1");
  const more = stream.write(body);
  stream.uncork();
  return more;
}
