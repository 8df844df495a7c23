import type { Writable } from "node:stream";

/**
 * Up to here copying a body behind its head is cheaper than a second write; as text, which a socket takes as it is,
 * cheaper than as bytes.
 */
const JOINED_BYTES_MAX = 16_384;
export const NOTHING: Buffer = Buffer.alloc(0);

/**
 * Writes a head and what there is of its body, in one write where that is cheap. False when the stream wants a pause.
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
