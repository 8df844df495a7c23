import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { type JSONRPCMessage, JSONRPCMessageSchema } from "@modelcontextprotocol/sdk/types.js";
import { z } from "zod";
import type { McpServer } from "../../contract/agent/agent.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { ignore } from "../../lib/failures.ts";
import type { Process, Sandbox } from "../../sandbox/sandbox.ts";
import type { Tool, ToolResult } from "../tool.ts";
import { BASH_CHARACTERS_MAX, cutMiddle } from "./limits.ts";
import { mcpResultText } from "./mcp-content.ts";

const START_MS_MAX = 30_000;
const CALL_MS_MAX = 600_000;
/** A longer line is not a message but an attack on our memory. */
const LINE_BYTES_MAX = 16 * 1024 * 1024;
const TOOLS_MAX = 200;
/** How much of a server's standard error is stored: its end shows why the server did not start. */
const STDERR_BYTES_MAX = 4096;
/** The length that every provider accepts. */
const NAME_CHARACTERS_MAX = 64;
const DESCRIPTION_CHARACTERS_MAX = 4000;
/** How often a run restarts a server that dies. */
const RESTARTS_MAX = 3;

export interface McpConnection extends AsyncDisposable {
  readonly tools: readonly Tool[];
}

interface McpOptions {
  name: string;
  server: McpServer;
  /** Returns the run's current sandbox, which changes if the first one is lost. */
  sandbox: () => Promise<Sandbox>;
  run: string;
  /**
   * The epoch of the run's holder. A connection cannot be taken over: each holder starts its own servers, and ends
   * those of earlier holders.
   */
  epoch: number;
  startMsMax?: number;
}

interface Live {
  client: Client;
  process: Process;
  closed: boolean;
  stderr: StderrTail;
}

interface StderrTail {
  text: string;
}

const refOf = (options: Pick<McpOptions, "run" | "name" | "epoch">, start: number) =>
  `${options.run}:mcp:${options.name}:${options.epoch}:${start}`;

/**
 * Starts an MCP server inside the sandbox and offers its tools as `SERVER__TOOL`. No part of it runs on the host, and
 * its answers are data. A server that died is restarted at the next call. Throws `invalid`, with the server's standard
 * error, if it does not start or does not respond.
 */
export async function connectMcp(options: McpOptions): Promise<McpConnection> {
  let starts = 1;
  let live = await startServer(options, starts);
  const client = async () => {
    if (live.closed && starts <= RESTARTS_MAX) {
      starts += 1;
      live = await startServer(options, starts);
    }
    return live.client;
  };
  try {
    const tools = await listTools(live.client, options.startMsMax ?? START_MS_MAX);
    const names = new Set<string>();
    return {
      tools: tools.map((tool) => mcpTool(options.name, client, { ...tool, shown: toolName(options.name, tool.name, names) })),
      [Symbol.asyncDispose]: () => endServer(live),
    };
  } catch (error) {
    await endServer(live);
    throw notStarted(options.name, error, live.stderr);
  }
}

/** Ends the servers of earlier holders, which no longer have a client. */
export async function endEarlierServers(sandbox: Sandbox, about: { run: string; epoch: number }): Promise<void> {
  const ours = new RegExp(`^${about.run}:mcp:.*:(\\d+):\\d+$`);
  for (const { ref, state } of await sandbox.processes()) {
    const epoch = ref === null ? undefined : ours.exec(ref)?.[1];
    if (ref === null || epoch === undefined || Number(epoch) >= about.epoch || state === "ended") continue;
    const process = await sandbox.attach(ref);
    process.discardOutput();
    await process.kill();
  }
}

async function startServer(options: McpOptions, start: number): Promise<Live> {
  const { server } = options;
  const sandbox = await options.sandbox();
  const process = await sandbox
    .spawn({ argv: [server.command, ...server.args], env: server.env, ref: refOf(options, start), stdin: "pipe" })
    .catch((error: unknown) => {
      throw notStarted(options.name, error);
    });
  const stderr: StderrTail = { text: "" };
  const live: Live = { client: new Client({ name: "caisson", version: "1" }), process, closed: false, stderr };
  live.client.onclose = () => {
    live.closed = true;
  };
  try {
    await live.client.connect(createTransport(process, stderr), { timeout: options.startMsMax ?? START_MS_MAX });
    return live;
  } catch (error) {
    await endServer(live);
    throw notStarted(options.name, error, stderr);
  }
}

async function endServer(live: Live): Promise<void> {
  await ignore(live.client.close(), "its process is killed next");
  await ignore(live.process.kill(), "it has ended already, or ends with the sandbox");
}

interface McpToolInfo {
  name: string;
  description?: string | undefined;
  inputSchema: unknown;
}

async function listTools(client: Client, timeout: number): Promise<McpToolInfo[]> {
  const tools: McpToolInfo[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.listTools(cursor === undefined ? undefined : { cursor }, { timeout });
    tools.push(...page.tools);
    cursor = page.nextCursor;
  } while (cursor !== undefined && tools.length < TOOLS_MAX);
  return tools.slice(0, TOOLS_MAX);
}

/** Returns a unique tool name that every provider accepts. */
function toolName(server: string, name: string, usedNames: Set<string>): string {
  const plain = `${server}__${name}`.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, NAME_CHARACTERS_MAX);
  let free = plain;
  for (let number = 2; usedNames.has(free); number++) free = `${plain.slice(0, NAME_CHARACTERS_MAX - 4)}_${number}`;
  usedNames.add(free);
  return free;
}

function mcpTool(server: string, client: () => Promise<Client>, tool: McpToolInfo & { shown: string }): Tool {
  const about = (tool.description ?? tool.name).slice(0, DESCRIPTION_CHARACTERS_MAX);
  return {
    name: tool.shown,
    description: `${about} (returns at most ${BASH_CHARACTERS_MAX} characters)`,
    // The server checks the arguments itself, and the model gets the server's schema.
    parameters: z.record(z.string(), z.unknown()),
    jsonSchema: tool.inputSchema as z.core.util.JSONType,
    parallel: false,
    repeatable: false,
    files: "any",
    subject: () => `mcp:${server}:${tool.name}`,
    async run(args, context): Promise<ToolResult> {
      try {
        const now = await client();
        const result = await now.callTool({ name: tool.name, arguments: args as Record<string, unknown> }, undefined, {
          timeout: CALL_MS_MAX,
          signal: context.signal,
        });
        const { text } = cutMiddle(mcpResultText(result), { charactersMax: BASH_CHARACTERS_MAX });
        return { outcome: result.isError ? "error" : "ok", text };
      } catch (error) {
        if (context.signal.aborted) return { outcome: "interrupted", text: "The call was interrupted." };
        if (error instanceof CaissonError && (error.code === "lost" || error.code === "protocol")) throw error;
        return {
          outcome: "error",
          text: `The MCP server ${server} failed: ${error instanceof Error ? error.message.slice(0, 500) : "unknown"}`,
        };
      }
    },
  };
}

/** Creates MCP's stdio transport: one JSON message per line over the process's stdin and stdout. */
export function createTransport(process: Pick<Process, "output" | "write" | "closeStdin" | "kill">, stderr: StderrTail): Transport {
  const transport: Transport = {
    async start() {
      void pump(process, transport, stderr);
    },
    async send(message: JSONRPCMessage) {
      await process.write(Buffer.from(`${JSON.stringify(message)}\n`));
    },
    async close() {
      await ignore(process.closeStdin(), "the process has ended");
      transport.onclose?.();
    },
  };
  return transport;
}

async function pump(process: Pick<Process, "output" | "kill">, transport: Transport, stderr: StderrTail): Promise<void> {
  let pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of process.output) {
    if (chunk.stream !== "stdout") {
      stderr.text = `${stderr.text}${Buffer.from(chunk.data).toString("utf8")}`.slice(-STDERR_BYTES_MAX);
      continue;
    }
    let rest = chunk.data;
    for (let end = rest.indexOf(10); end !== -1; end = rest.indexOf(10)) {
      deliver(Buffer.concat([...pieces, rest.subarray(0, end)]).toString("utf8"), transport);
      pieces = [];
      bytes = 0;
      rest = rest.subarray(end + 1);
    }
    pieces.push(rest);
    bytes += rest.length;
    if (bytes > LINE_BYTES_MAX) {
      transport.onerror?.(new CaissonError("protocol", "the MCP server sent a line that is too long"));
      await ignore(process.kill(), "it has ended already, or ends with the sandbox");
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
    transport.onerror?.(new CaissonError("protocol", `the MCP server sent an invalid message: ${line.slice(0, 200)}`));
  }
}

/** Passes on the loss of the sandbox; blames the server for any other error. */
function notStarted(name: string, error: unknown, stderr: StderrTail = { text: "" }): CaissonError {
  if (error instanceof CaissonError && (error.code === "lost" || error.code === "protocol")) return error;
  const what = error instanceof Error ? error.message : String(error);
  const stderrText = stderr.text.trim();
  return new CaissonError(
    "invalid",
    `the MCP server ${name} did not start: ${what.slice(0, 500)}${stderrText === "" ? "" : `; standard error:\n${stderrText.toWellFormed()}`}`,
    { hint: "Its command must exist inside the sandbox and speak MCP on standard input and output.", cause: error },
  );
}
