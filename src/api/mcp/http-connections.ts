import { randomUUID } from "node:crypto";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import type { RequestId } from "@modelcontextprotocol/sdk/types.js";
import { CaissonError } from "../../contract/error.ts";
import type { McpBounds } from "../../contract/mcp-bounds.ts";
import { SandboxSpec } from "../../contract/sandbox.ts";
import type { Scope } from "../../contract/token-verbs.ts";
import { jsonOrNull } from "../../lib/json-or-null.ts";
import type { RequestLife } from "../open-requests.ts";
import { boundedBody } from "../read-call.ts";
import type { McpStation } from "./mcp-context.ts";
import { createMcpFace, type McpFace } from "./mcp-server.ts";
import type { ToolAudit } from "./mcp-tool.ts";
import { type OpenStream, streamedAnswer } from "./streamed-answer.ts";

const BODY_BYTES_MAX = 4 * 1024 * 1024;
const CONNECTIONS_MAX = 200;
const CONNECTIONS_PER_CALLER_MAX = 20;
/** A client that says nothing for this long has gone. */
const IDLE_MS = 60 * 60_000;
const LOOK_MS = 60_000;

export interface McpCaller {
  /** Whose connections these are: nobody else may use them. */
  key: string;
  station: McpStation;
  scope: Scope;
  by: string;
  audit: ToolAudit;
}

export interface McpConnections extends AsyncDisposable {
  /** Answers one request of MCP's streamable HTTP. */
  answer(request: Request, options: { caller: McpCaller; life: RequestLife }): Promise<Response>;
}

interface Connection {
  key: string;
  face: McpFace;
  transport: WebStandardStreamableHTTPServerTransport;
  /** Answers that are being streamed, by the requests they are for. */
  open: Map<RequestId | OpenStream, OpenStream>;
  lastUsedMs: number;
}

/** Over HTTP nothing was decided beforehand: a model may what its token may, and sandboxes stay, as the API's do. */
const bounds = (): McpBounds => ({
  sandbox: { spec: SandboxSpec.parse({}) },
  run: {},
  most: null,
  choosesTemplate: true,
  keeps: true,
  reaches: "all",
});

/** The clients that talk MCP over HTTP. */
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
      const found = id === null ? await begin(caller) : connections.get(id);
      // Of another caller's connection nobody learns that it is there.
      if (found === undefined || found.key !== caller.key) return ended(life, unknownConnection());
      found.lastUsedMs = performance.now();
      const response = await found.transport.handleRequest(request, { parsedBody, authInfo: authInfoOf(caller) });
      // Whoever did not begin one properly leaves nothing behind.
      if (id === null && found.transport.sessionId === undefined) await found.face[Symbol.asyncDispose]();
      endCancelled(found, parsedBody);
      if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return ended(life, response);
      return streamedAnswer(response, { life, requests: requestsIn(parsedBody), connection: found });
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await Promise.all([...connections].map(([id, each]) => end(id, each)));
    },
  };
}

/** What the SDK hands to the tools with each request; who it is was decided before. */
const authInfoOf = ({ key, scope, audit }: McpCaller) => ({ token: "", clientId: key, scopes: [scope], extra: { audit } });

/** Throws `busy`. */
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
  if (value === null) throw new CaissonError("invalid", "the body is not a JSON object", { hint: "Send a message of MCP." });
  return value;
}

const each = (body: unknown): readonly unknown[] => (Array.isArray(body) ? body : [body]);

function requestsIn(body: unknown): RequestId[] {
  return each(body).flatMap((message) => {
    const { id, method } = (message ?? {}) as { id?: RequestId; method?: unknown };
    return id !== undefined && typeof method === "string" ? [id] : [];
  });
}

/** A call that was cancelled is never answered: its stream has nothing more to say. */
function endCancelled({ open }: Connection, body: unknown): void {
  for (const message of each(body)) {
    const { method, params } = (message ?? {}) as { method?: unknown; params?: { requestId?: RequestId } };
    if (method === "notifications/cancelled" && params?.requestId !== undefined) open.get(params.requestId)?.end();
  }
}

function ended(life: RequestLife, response: Response): Response {
  life.end();
  return response;
}

/** As the protocol wants it: the client begins anew. */
function unknownConnection(): Response {
  return Response.json({ jsonrpc: "2.0", error: { code: -32001, message: "Session not found" }, id: null }, { status: 404 });
}
