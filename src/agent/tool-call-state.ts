import type { AssistantPart } from "../contract/run.ts";

export interface ToolCallState {
  call: string;
  providerCall: string;
  name: string;
  arguments: unknown;
  badArguments: string | undefined;
  /** `started` means the effect may have happened. */
  status: "new" | "requested" | "started" | "ended";
  /** When it was, in the log's time. */
  startedAt: string | null;
  /** The open or answered question about it. */
  question: string | null;
  /** It was started in a sandbox that is no more: nobody knows how far it came. What became of that sandbox's files. */
  sandboxLost: "kept" | "gone" | null;
  /** The run ended before it did, and went on later: it is neither made nor finished any more. */
  abandoned: boolean;
}

/** As the model asked for it. */
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
