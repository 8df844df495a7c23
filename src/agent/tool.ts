import type { z } from "zod";
import type { CallId, TodoList } from "../contract/run/run.ts";
import type { RunEvent } from "../contract/run/run-event.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { RunNetwork } from "./run-network.ts";

/** Everything a run ever did, read from its log, including what compaction removed from the conversation. */
export interface History {
  /** All events from the first, with their sequence numbers. */
  events(): AsyncIterable<{ seq: number; event: RunEvent }>;
}

export interface ToolContext {
  /** The tool tier of the run's sandbox. Tools act only through it. */
  sandbox: Sandbox;
  call: CallId;
  /** Returns a process ref. It is the same after a crash, so a repeated call attaches to the same process. */
  ref: (suffix?: string) => string;
  signal: AbortSignal;
  /** Live output, for viewers. */
  onOutput: (text: string) => void;
  /** True if an earlier holder started this call, so it may have taken effect. */
  resumed: boolean;
  /** The run's todo list, stored in its log. */
  todo: { get(): TodoList; set(list: TodoList): Promise<void> };
  history: History;
  network: Pick<RunNetwork, "fetch" | "allow" | "takeDenials">;
}

export interface ToolResult {
  /** The text for the model, within the tool's own size limit. */
  text: string;
  outcome: "ok" | "error" | "interrupted" | "lost";
  details?: z.core.util.JSONType;
  files?: readonly { path: string; kind: "added" | "modified" | "removed"; linesAdded: number | null; linesRemoved: number | null }[];
}

/**
 * An action that an agent can take. If something fails inside the sandbox, `run` does not throw: it returns the failure
 * as a result for the model.
 */
export interface Tool<Arguments = unknown> {
  readonly name: string;
  /** Text for the model; includes the current limits. */
  readonly description: string;
  readonly parameters: z.ZodType<Arguments>;
  /** A schema for the model that replaces the one of `parameters`. */
  readonly jsonSchema?: z.core.util.JSONType;
  /** May run in parallel with other calls of the same step. */
  readonly parallel: boolean;
  /** May safely run again after a crash, because it only reads. */
  readonly repeatable: boolean;
  /**
   * How a call may affect the files inside: not at all (`untouched`), with every change listed in its result's `files`
   * (`listed`), or in any way.
   */
  readonly files: "untouched" | "listed" | "any";
  /**
   * For a tool that is not repeatable. If a call had already started (`context.resumed`), `run` itself determines its
   * outcome, with the guest's idempotent ref or by inspection. Without this flag, the call ends as `lost` and is not
   * repeated.
   */
  readonly resumable?: boolean;
  /** Even if a person answers `always` to a question about this tool, the answer applies only once. */
  readonly asksEachTime?: boolean;
  /** The text that permission patterns match, such as `bash:git push origin main` or `write:src/a.ts`. */
  subject(args: Arguments): string;
  run(args: Arguments, context: ToolContext): Promise<ToolResult>;
}
