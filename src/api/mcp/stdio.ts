import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { ignore } from "../../lib/failures.ts";
import { createMcpFace, type McpOptions } from "./mcp-server.ts";

const MESSAGE_BYTES_MAX = 16 * 1024 * 1024;

/**
 * Serves one client over these streams until it disconnects or the signal aborts. Then releases what the client held.
 */
export async function serveMcpOverStdio(options: McpOptions & { input: Readable; output: Writable; signal: AbortSignal }): Promise<void> {
  const { input, output, signal } = options;
  await using face = createMcpFace(options);
  const transport = new StdioServerTransport(input, output, { maxBufferSize: MESSAGE_BYTES_MAX });
  const closed = Promise.withResolvers<void>();
  face.server.server.onclose = () => closed.resolve();
  const closing = Promise.race([once(input, "end"), once(input, "close"), once(output, "close"), once(output, "error")]);
  const disconnected = ignore(closing, "a broken stream means that the client disconnected");
  await face.server.connect(transport);
  await Promise.race([closed.promise, disconnected, signal.aborted ? undefined : once(signal, "abort")]);
}
