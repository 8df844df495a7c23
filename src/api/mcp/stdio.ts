import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { createMcpFace, type McpOptions } from "./mcp-server.ts";

const MESSAGE_BYTES_MAX = 16 * 1024 * 1024;

/** Serves one client over these streams, until it goes away or the signal; then what it held is gone. */
export async function serveMcpOverStdio(options: McpOptions & { input: Readable; output: Writable; signal: AbortSignal }): Promise<void> {
  const { input, output, signal } = options;
  await using face = createMcpFace(options);
  const transport = new StdioServerTransport(input, output, { maxBufferSize: MESSAGE_BYTES_MAX });
  const closed = Promise.withResolvers<void>();
  face.server.server.onclose = () => closed.resolve();
  const gone = Promise.race([once(input, "end"), once(input, "close"), once(output, "close"), once(output, "error")]).catch(() => {});
  await face.server.connect(transport);
  await Promise.race([closed.promise, gone, signal.aborted ? undefined : once(signal, "abort")]);
}
