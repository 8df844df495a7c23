import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { RequestHandlerExtra } from "@modelcontextprotocol/sdk/shared/protocol.js";
import type { CallToolResult, ServerNotification, ServerRequest } from "@modelcontextprotocol/sdk/types.js";
import type { z } from "zod";
import { type AuditSubject, auditName } from "../../contract/audit/audit-text.ts";
import type { Scope } from "../../contract/token/token-verbs.ts";
import { asCaissonError } from "../answer.ts";
import { forModels } from "./model-hints.ts";
import { createProgress, type Progress } from "./progress.ts";

/** The arguments of a tool besides its input. */
export interface McpCall {
  /** Aborted when the client cancels the call or disconnects. */
  readonly signal: AbortSignal;
  /** Reaches only a client that requested it. */
  readonly progress: Progress;
}

type Content = CallToolResult["content"][number];
export interface ToolAnswer<Output extends z.ZodObject> {
  structured: z.input<Output>;
  /** The same for a reader, with the output of the sandbox marked as data. */
  text: string;
  more?: readonly Content[];
}

export interface McpTool<Input extends z.ZodObject = z.ZodObject, Output extends z.ZodObject = z.ZodObject> {
  name: string;
  title: string;
  description: string;
  /** The minimum scope of the caller's token. */
  scope: Scope;
  input: Input;
  output: Output;
  /** `reads` changes nothing, `destroys` may destroy something, and `adds` does neither. */
  effect: "reads" | "adds" | "destroys";
  /** Whether it may reach something outside the station. */
  openWorld?: boolean;
  run(args: z.output<Input>, call: McpCall): Promise<ToolAnswer<Output>>;
}

/** The log of tool calls that change something. */
export interface ToolAudit {
  /** Records the call before it has any effect. If this throws, the call must not be made. */
  record(tool: string, subject: AuditSubject): Promise<void>;
  /** Records a failure. Never throws. */
  recordFailure(tool: string, error: unknown): Promise<void>;
}

/** Lets the compiler check that arguments and answers have the shapes that the tool declares. */
export function defineTool<Input extends z.ZodObject, Output extends z.ZodObject>(tool: McpTool<Input, Output>): McpTool {
  return tool as unknown as McpTool;
}

/** Registers a tool. A failure becomes its answer, so that the model reads why it failed and what to do next. */
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
      // Passed with each request rather than the connection, because requests may come from different addresses.
      const audit = effect === "reads" ? undefined : (extra.authInfo?.extra?.audit as ToolAudit | undefined);
      try {
        await audit?.record(name, subjectOf(args));
        const { structured, text, more = [] } = await tool.run(args, { signal: extra.signal, progress });
        return { content: [{ type: "text", text }, ...more], structuredContent: structured };
      } catch (error) {
        await audit?.recordFailure(name, error);
        const failure = forModels(asCaissonError(error, onDefect));
        return { content: [{ type: "text", text: failure.sentences }], isError: true, _meta: { "caisson/problem": failure.toJSON() } };
      } finally {
        await progress.end();
      }
    },
  );
}

/** The arguments that are names. The content of commands, files and messages may be secret. */
const NAMING = ["sandbox", "run", "session", "question", "name", "agent", "path", "port", "user"] as const;

function subjectOf(args: Readonly<Record<string, unknown>>): AuditSubject {
  const named = NAMING.flatMap((key) => (args[key] === undefined ? [] : [[key, auditName(String(args[key]))] as const]));
  const [program] = Array.isArray(args.argv) ? args.argv : [];
  return { ...Object.fromEntries(named), ...(typeof program === "string" && { program: auditName(program) }) };
}
