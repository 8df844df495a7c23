import { randomUUID } from "node:crypto";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import type { RequestId } from "@modelcontextprotocol/sdk/types.js";
import type { McpBounds } from "../../contract/api/mcp-bounds.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { SandboxConfig } from "../../contract/sandbox/sandbox.ts";
import type { Scope } from "../../contract/token/token-verbs.ts";
import { jsonOrNull } from "../../lib/failures.ts";
import type { RequestLife } from "../open-requests.ts";
import { boundedBody } from "../read-call.ts";
import type { McpStation } from "./mcp-context.ts";
import { createMcpFace, type McpFace } from "./mcp-server.ts";
import type { ToolAudit } from "./mcp-tool.ts";
import { type OpenStream, streamedAnswer } from "./streamed-answer.ts";

const BODY_BYTES_MAX = 4 * 1024 * 1024;
const CONNECTIONS_MAX = 200;
const CONNECTIONS_PER_CALLER_MAX = 20;
/** A client that sends nothing for this long counts as disconnected. */
const IDLE_MS = 60 * 60_000;
const LOOK_MS = 60_000;

export interface McpCaller {
  /** The owner of the connections: no other caller may use them. */
  key: string;
  station: McpStation;
  scope: Scope;
  by: string;
  audit: ToolAudit;
}

export interface McpConnections extends AsyncDisposable {
  /** Answers one request of MCP's streamable HTTP transport. */
  answer(request: Request, options: { caller: McpCaller; life: RequestLife }): Promise<Response>;
}

interface Connection {
  key: string;
  face: McpFace;
  transport: WebStandardStreamableHTTPServerTransport;
  /** Open answer streams, by the requests that they answer. */
  open: Map<RequestId | OpenStream, OpenStream>;
  lastUsedMs: number;
}

/**
 * Over HTTP, no person has set limits beforehand. A model may do everything that its token allows, and its sandboxes
 * persist, as with the API.
 */
const bounds = (): McpBounds => ({
  sandbox: { spec: SandboxConfig.parse({}) },
  run: {},
  most: null,
  choosesTemplate: true,
  keeps: true,
  reaches: "all",
});

/** Creates the connections of clients that use MCP over HTTP. */
export function createMcpConnections(options: { version: string; onDefect: (error: unknown) => void }): McpConnections {
  const connections = new Map<string, Connection>();
  const end = async (id: string, connection: Connection) => {
    connections.delete(id);
    for (const stream of connection.open.values()) stream.end();
    await connection.face[Symbol.asyncDispose]();
  };
  const endIdle = () => {
    const before = performance.now() - IDLE_MS;
    for (const [id, each] of connections) if (each.open.size === 0 && each.lastUsedMs < before) void end(id, each);
  };
  const timer = setInterval(endIdle, LOOK_MS).unref();
  const begin = async (caller: McpCaller): Promise<Connection> => {
    await makeRoom(connections, { caller, end });
    const face = createMcpFace({ ...options, ...caller, bounds: bounds() });
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void connections.set(id, connection),
      onsessionclosed: (id) => void end(id, connection),
    });
    const connection: Connection = { key: caller.key, face, transport, open: new Map(), lastUsedMs: performance.now() };
    await face.server.connect(transport);
    return connection;
  };
  return {
    async answer(request, { caller, life }) {
      const parsedBody = request.method === "POST" ? await messagesOf(request) : undefined;
      const id = request.headers.get("mcp-session-id");
      const connection = id === null ? await begin(caller) : connections.get(id);
      // A caller cannot learn that another caller's connection exists.
      if (connection === undefined || connection.key !== caller.key) return endLife(life, unknownConnection());
      connection.lastUsedMs = performance.now();
      const response = await connection.transport.handleRequest(request, { parsedBody, authInfo: authInfoOf(caller) });
      // A client that did not initialize its connection properly leaves nothing behind.
      if (id === null && connection.transport.sessionId === undefined) await connection.face[Symbol.asyncDispose]();
      endCancelled(connection, parsedBody);
      if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return endLife(life, response);
      return streamedAnswer(response, { life, requests: requestsIn(parsedBody), connection: connection });
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await Promise.all([...connections].map(([id, each]) => end(id, each)));
    },
  };
}

/** The data that the SDK passes to the tools with each request. The caller is already authenticated. */
const authInfoOf = ({ key, scope, audit }: McpCaller) => ({ token: "", clientId: key, scopes: [scope], extra: { audit } });

/** Ends the oldest idle connection if there are too many. Throws `busy` if all are in use. */
async function makeRoom(
  connections: ReadonlyMap<string, Connection>,
  { caller, end }: { caller: McpCaller; end: (id: string, connection: Connection) => Promise<void> },
): Promise<void> {
  const ofCaller = [...connections].filter(([, { key }]) => key === caller.key);
  const crowded = ofCaller.length >= CONNECTIONS_PER_CALLER_MAX ? ofCaller : connections.size >= CONNECTIONS_MAX ? [...connections] : [];
  if (crowded.length === 0) return;
  const [oldest] = crowded.filter(([, { open }]) => open.size === 0).sort(([, a], [, b]) => a.lastUsedMs - b.lastUsedMs);
  if (oldest === undefined) throw new CaissonError("busy", "too many MCP clients are connected", { hint: "Close some of them." });
  await end(...oldest);
}

async function messagesOf(request: Request): Promise<unknown> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of boundedBody(request.body, BODY_BYTES_MAX)) chunks.push(chunk);
  const value = jsonOrNull(Buffer.concat(chunks).toString("utf8"));
  if (value === null) throw new CaissonError("invalid", "the body is not a JSON object", { hint: "Send an MCP message." });
  return value;
}

const each = (body: unknown): readonly unknown[] => (Array.isArray(body) ? body : [body]);

function requestsIn(body: unknown): RequestId[] {
  return each(body).flatMap((message) => {
    const { id, method } = (message ?? {}) as { id?: RequestId; method?: unknown };
    return id !== undefined && typeof method === "string" ? [id] : [];
  });
}

/** A cancelled call is never answered, so its stream can end. */
function endCancelled({ open }: Connection, body: unknown): void {
  for (const message of each(body)) {
    const { method, params } = (message ?? {}) as { method?: unknown; params?: { requestId?: RequestId } };
    if (method === "notifications/cancelled" && params?.requestId !== undefined) open.get(params.requestId)?.end();
  }
}

function endLife(life: RequestLife, response: Response): Response {
  life.end();
  return response;
}

/** The answer that makes a client start again, as the protocol requires. */
function unknownConnection(): Response {
  return Response.json({ jsonrpc: "2.0", error: { code: -32001, message: "Session not found" }, id: null }, { status: 404 });
}
