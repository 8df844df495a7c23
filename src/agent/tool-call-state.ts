import type { AssistantPart } from "../contract/run/run.ts";

export interface ToolCallState {
  call: string;
  providerCall: string;
  name: string;
  arguments: unknown;
  badArguments: string | undefined;
  /** `started` means that the call may have taken effect. */
  status: "new" | "requested" | "started" | "ended";
  /** The log time at which it started. */
  startedAt: string | null;
  /** The open or answered question about it. */
  question: string | null;
  /**
   * Set if the sandbox of a started call was lost, so the call may have taken partial effect: what happened to that
   * sandbox's files.
   */
  sandboxLost: "kept" | "gone" | null;
  /** True if the run ended during or before this call and was continued later. The call is not made or finished. */
  abandoned: boolean;
}

/** Returns the initial state of a call that the model requested. */
export function newToolCall(part: Extract<AssistantPart, { kind: "toolCall" }>): ToolCallState {
  return {
    call: part.call,
    providerCall: part.providerCall,
    name: part.name,
    arguments: part.arguments,
    badArguments: part.badArguments,
    status: "new",
    startedAt: null,
    question: null,
    sandboxLost: null,
    abandoned: false,
  };
}
