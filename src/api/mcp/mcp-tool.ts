import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { RequestHandlerExtra } from "@modelcontextprotocol/sdk/shared/protocol.js";
import type { CallToolResult, ServerNotification, ServerRequest } from "@modelcontextprotocol/sdk/types.js";
import type { z } from "zod";
import type { Scope } from "../../contract/token-verbs.ts";
import { asCaissonError } from "../answer.ts";
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
      try {
        const { structured, text, more = [] } = await tool.run(args, { signal: extra.signal, progress });
        return { content: [{ type: "text", text }, ...more], structuredContent: structured };
      } catch (error) {
        const told = asCaissonError(error, onDefect);
        return { content: [{ type: "text", text: told.sentences }], isError: true, _meta: { "caisson/problem": told.toJSON() } };
      } finally {
        await progress.end();
      }
    },
  );
}
