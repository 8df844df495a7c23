import type { z } from "zod";
import type { CallId, TodoList } from "../contract/run.ts";
import type { RunEvent } from "../contract/run-event.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { RunNetwork } from "./run-network.ts";

/** Everything a run ever did, as its log has it: what a compaction left out of the conversation is still here. */
export interface History {
  /** From the first event on, with their places in the log. */
  events(): AsyncIterable<{ seq: number; event: RunEvent }>;
}

export interface ToolContext {
  /** The only way to do anything: the tool tier of the run's sandbox. */
  sandbox: Sandbox;
  call: CallId;
  /** For process refs: the same call asked again after a crash attaches to the same process. */
  ref: (suffix?: string) => string;
  signal: AbortSignal;
  /** Live output, for watching. */
  onOutput: (text: string) => void;
  /** True when this call was begun by an earlier owner and its effect may have happened. */
  resumed: boolean;
  /** The run's todo list, which lives in its log. */
  todo: { get(): TodoList; set(list: TodoList): Promise<void> };
  history: History;
  network: Pick<RunNetwork, "fetch" | "allow" | "takeDenials">;
}

export interface ToolResult {
  /** What the model is told, within the tool's own limit. */
  text: string;
  outcome: "ok" | "error" | "interrupted" | "lost";
  details?: z.core.util.JSONType;
  files?: readonly { path: string; kind: "added" | "modified" | "removed"; linesAdded: number | null; linesRemoved: number | null }[];
}

/** One thing an agent can do. `run` never throws for what went wrong inside: that is a result the model reads. */
export interface Tool<Arguments = unknown> {
  readonly name: string;
  /** With the limits in force, in words the model reads. */
  readonly description: string;
  readonly parameters: z.ZodType<Arguments>;
  /** What the model is shown instead of the parameters' own schema. */
  readonly jsonSchema?: z.core.util.JSONType;
  /** May run beside other calls of the same step. */
  readonly parallel: boolean;
  /** May be repeated after a crash without harm (reading). */
  readonly repeatable: boolean;
  /**
   * For one that may not be repeated: `run` finds out by itself what became of a call that was begun before
   * (`context.resumed`), by the guest's idempotent ref or by looking. Otherwise such a call is answered `lost`, and not
   * made again.
   */
  readonly resumable?: boolean;
  /** An answer `always` to a question about it counts once only. */
  readonly asksEachTime?: boolean;
  /** What permission patterns are matched against, such as `bash:git push origin main` or `write:src/a.ts`. */
  subject(args: Arguments): string;
  run(args: Arguments, context: ToolContext): Promise<ToolResult>;
}
