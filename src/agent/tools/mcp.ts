import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { type JSONRPCMessage, JSONRPCMessageSchema } from "@modelcontextprotocol/sdk/types.js";
import { z } from "zod";
import type { McpServer } from "../../contract/agent.ts";
import { CaissonError } from "../../contract/error.ts";
import type { Process, Sandbox } from "../../sandbox/sandbox.ts";
import type { Tool, ToolResult } from "../tool.ts";
import { BASH_CHARACTERS_MAX, cutMiddle } from "./limits.ts";

const START_MS_MAX = 30_000;
const CALL_MS_MAX = 600_000;
/** A message longer than this is no message but an attack on our memory. */
const LINE_BYTES_MAX = 16 * 1024 * 1024;
const TOOLS_MAX = 200;

export interface McpConnection extends AsyncDisposable {
  readonly tools: readonly Tool[];
}

/**
 * Starts an MCP server inside the sandbox and offers its tools as `SERVER__TOOL`. Nothing of it runs on the host; what it says is data. Throws
 * `unavailable` when it does not start or does not speak.
 */
export async function connectMcp(options: { name: string; server: McpServer; sandbox: Sandbox; ref: string }): Promise<McpConnection> {
  const process = await options.sandbox
    .spawn({ argv: [options.server.command, ...options.server.args], env: options.server.env, ref: options.ref, stdin: "pipe" })
    .catch((error: unknown) => {
      throw unavailable(options.name, error);
    });
  const client = new Client({ name: "caisson", version: "1" });
  try {
    await client.connect(createTransport(process), { timeout: START_MS_MAX });
    const { tools } = await client.listTools(undefined, { timeout: START_MS_MAX });
    return {
      tools: tools.slice(0, TOOLS_MAX).map((tool) => mcpTool(options.name, client, tool)),
      async [Symbol.asyncDispose]() {
        await client.close().catch(() => undefined);
        await process.kill().catch(() => undefined);
      },
    };
  } catch (error) {
    await process.kill().catch(() => undefined);
    throw unavailable(options.name, error);
  }
}

function mcpTool(server: string, client: Client, tool: { name: string; description?: string | undefined; inputSchema: unknown }): Tool {
  return {
    name: `${server}__${tool.name}`,
    description: `${tool.description ?? tool.name} (at most ${BASH_CHARACTERS_MAX} characters come back)`,
    // The server checks its own arguments; the model is shown its schema.
    parameters: z.record(z.string(), z.unknown()).meta(tool.inputSchema as Record<string, unknown>) as z.ZodType<unknown>,
    parallel: false,
    repeatable: false,
    subject: () => `mcp:${server}:${tool.name}`,
    async run(args, context): Promise<ToolResult> {
      try {
        const result = await client.callTool({ name: tool.name, arguments: args as Record<string, unknown> }, undefined, {
          timeout: CALL_MS_MAX,
          signal: context.signal,
        });
        const { text } = cutMiddle(contentText(result.content), { charactersMax: BASH_CHARACTERS_MAX });
        return { outcome: result.isError ? "error" : "ok", text };
      } catch (error) {
        if (context.signal.aborted) return { outcome: "interrupted", text: "The call was interrupted." };
        return {
          outcome: "error",
          text: `The MCP server ${server} failed: ${error instanceof Error ? error.message.slice(0, 500) : "unknown"}`,
        };
      }
    },
  };
}

function contentText(content: unknown): string {
  if (!Array.isArray(content)) return JSON.stringify(content ?? null);
  const parts = content.map((part: { type?: string; text?: string; mimeType?: string }) =>
    part.type === "text" ? (part.text ?? "") : `[${part.type ?? "something"}${part.mimeType ? ` ${part.mimeType}` : ""}]`,
  );
  return parts.join("\n") || "(nothing)";
}

/** One JSON message a line over the process's stdin and stdout, as MCP's stdio transport has it. */
function createTransport(process: Process): Transport {
  const transport: Transport = {
    async start() {
      void pump(process, transport);
    },
    async send(message: JSONRPCMessage) {
      await process.write(Buffer.from(`${JSON.stringify(message)}\n`));
    },
    async close() {
      await process.closeStdin().catch(() => undefined);
      transport.onclose?.();
    },
  };
  return transport;
}

async function pump(process: Process, transport: Transport): Promise<void> {
  let rest = Buffer.alloc(0);
  for await (const chunk of process.output) {
    if (chunk.stream !== "stdout") continue;
    rest = Buffer.concat([rest, chunk.data]);
    for (let end = rest.indexOf(10); end !== -1; end = rest.indexOf(10)) {
      deliver(rest.subarray(0, end).toString("utf8"), transport);
      rest = rest.subarray(end + 1);
    }
    if (rest.length > LINE_BYTES_MAX) {
      transport.onerror?.(new CaissonError("protocol", "The MCP server sent a line without end."));
      break;
    }
  }
  transport.onclose?.();
}

function deliver(line: string, transport: Transport): void {
  if (line.trim() === "") return;
  try {
    transport.onmessage?.(JSONRPCMessageSchema.parse(JSON.parse(line)));
  } catch {
    transport.onerror?.(new CaissonError("protocol", `The MCP server sent what is no message: ${line.slice(0, 200)}`));
  }
}

function unavailable(name: string, error: unknown): CaissonError {
  const what = error instanceof Error ? error.message : String(error);
  return new CaissonError("unavailable", `The MCP server ${name} did not start: ${what.slice(0, 500)}`, {
    hint: "Its command must exist inside the sandbox and speak MCP on standard input and output.",
    cause: error,
  });
}
