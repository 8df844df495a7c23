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
   * What happened to the files of the sandbox, if the sandbox was lost after the call had started. The call may then
   * have taken partial effect. Otherwise null.
   */
  sandboxLost: "kept" | "gone" | null;
  /**
   * True if the run ended during or before this call and was continued later. Such a call is neither started nor
   * completed.
   */
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
