import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { RequestHandlerExtra } from "@modelcontextprotocol/sdk/shared/protocol.js";
import type { CallToolResult, ServerNotification, ServerRequest } from "@modelcontextprotocol/sdk/types.js";
import type { z } from "zod";
import { type AuditSubject, auditName } from "../../contract/audit-text.ts";
import type { Scope } from "../../contract/token-verbs.ts";
import { asCaissonError } from "../answer.ts";
import { forModels } from "./model-hints.ts";
import { createProgress, type Progress } from "./progress.ts";

/** What a tool is given besides its arguments. */
export interface McpCall {
  /** Aborted when the client cancels the call or goes away. */
  readonly signal: AbortSignal;
  /** For a client that asked for it; else nobody hears. */
  readonly progress: Progress;
}

type Content = CallToolResult["content"][number];
export interface ToolAnswer<Output extends z.ZodObject> {
  structured: z.input<Output>;
  /** The same for a reader; what a sandbox wrote is marked as data. */
  text: string;
  more?: readonly Content[];
}

export interface McpTool<Input extends z.ZodObject = z.ZodObject, Output extends z.ZodObject = z.ZodObject> {
  name: string;
  title: string;
  description: string;
  /** The least that a caller's token must have. */
  scope: Scope;
  input: Input;
  output: Output;
  /** Changes nothing; or may destroy something. Neither: it adds. */
  effect: "reads" | "adds" | "destroys";
  /** Whether something outside the station may be reached by it. */
  openWorld?: boolean;
  run(args: z.output<Input>, call: McpCall): Promise<ToolAnswer<Output>>;
}

/** Where calls of tools that change something are put down. */
export interface ToolAudit {
  /** Before it has any effect. Throws what keeps it from being put down: then it must not have one. */
  made(tool: string, subject: AuditSubject): Promise<void>;
  /** Never throws. */
  failed(tool: string, error: unknown): Promise<void>;
}

/** For the compiler: arguments and answers have the shapes that the tool names. */
export function defineTool<Input extends z.ZodObject, Output extends z.ZodObject>(tool: McpTool<Input, Output>): McpTool {
  return tool as unknown as McpTool;
}

/** A tool that fails says so as its answer, so that the model reads why and what to do next. */
export function registerTool(server: McpServer, tool: McpTool, { onDefect }: { onDefect: (error: unknown) => void }): void {
  const { name, title, description, input, output, effect } = tool;
  const config = {
    title,
    description,
    inputSchema: input,
    outputSchema: output,
    annotations: {
      title,
      readOnlyHint: effect === "reads",
      destructiveHint: effect === "destroys",
      openWorldHint: tool.openWorld === true,
    },
  };
  server.registerTool(
    name,
    config,
    async (args, extra: RequestHandlerExtra<ServerRequest, ServerNotification>): Promise<CallToolResult> => {
      const progress = createProgress(extra);
      // With the request, and not with the client's connection: each may come from another address.
      const audit = effect === "reads" ? undefined : (extra.authInfo?.extra?.audit as ToolAudit | undefined);
      try {
        await audit?.made(name, subjectOf(args));
        const { structured, text, more = [] } = await tool.run(args, { signal: extra.signal, progress });
        return { content: [{ type: "text", text }, ...more], structuredContent: structured };
      } catch (error) {
        await audit?.failed(name, error);
        const told = forModels(asCaissonError(error, onDefect));
        return { content: [{ type: "text", text: told.sentences }], isError: true, _meta: { "caisson/problem": told.toJSON() } };
      } finally {
        await progress.end();
      }
    },
  );
}

/** Arguments that name something. What a command, a file or a message says may be a secret. */
const NAMING = ["sandbox", "run", "session", "question", "name", "agent", "path", "port", "user"] as const;

function subjectOf(args: Readonly<Record<string, unknown>>): AuditSubject {
  const named = NAMING.flatMap((key) => (args[key] === undefined ? [] : [[key, auditName(String(args[key]))] as const]));
  const [program] = Array.isArray(args.argv) ? args.argv : [];
  return { ...Object.fromEntries(named), ...(typeof program === "string" && { program: auditName(program) }) };
}
