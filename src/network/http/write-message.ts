import type { Writable } from "node:stream";

/** Up to here copying a body behind its head is cheaper than a second write. */
const JOINED_BYTES_MAX = 16_384;
export const NOTHING: Buffer = Buffer.alloc(0);

/**
 * Writes a head and what there is of its body, in one write where that is cheap. False when the stream wants a pause.
 */
export function writeMessage(stream: Writable, head: string, body: Buffer): boolean {
  if (body.length === 0) return stream.write(head, "latin1");
  if (body.length <= JOINED_BYTES_MAX) {
    const bytes = Buffer.allocUnsafe(head.length + body.length);
    bytes.write(head, 0, "latin1");
    body.copy(bytes, head.length);
    return stream.write(bytes);
  }
  stream.cork();
  stream.write(head, "latin1");
  const more = stream.write(body);
  stream.uncork();
  return more;
}
