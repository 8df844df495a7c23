import type { ProcessRef } from "../contract/ids.ts";
import type { SandboxInfo } from "../contract/sandbox/sandbox.ts";
import { CommandEnded, CommandOutput, CommandStarted, SandboxCreated, type SandboxEvent } from "../contract/sandbox/sandbox-event.ts";
import { textOrBase64 } from "../lib/text-or-base64.ts";
import type { ProcessObserver } from "./guest/process.ts";

/** Announces a sandbox that a runtime created; reopened sandboxes are not announced. */
export function emitCreated(onEvent: ((event: SandboxEvent) => void) | undefined, info: SandboxInfo): void {
  emitTo(onEvent, SandboxCreated.make({ sandbox: info.id, runtime: info.runtime, warnings: info.warnings }));
}

/**
 * Reports a process as events. `argv` is present for a process that may be new; an existing one is not announced again.
 */
export function observe(sandbox: string, ref: ProcessRef, emit: (event: SandboxEvent) => void, argv?: readonly string[]): ProcessObserver {
  return {
    onStarted({ pid, existing }) {
      if (argv === undefined || existing) return;
      emit(CommandStarted.make({ sandbox, ref, pid, argv: [...argv] }));
    },
    onOutput: ({ stream, offset, data }) => emit(CommandOutput.make({ sandbox, ref, stream, offset, ...textOrBase64(data) })),
    onEnded: (ended) => emit(CommandEnded.make({ sandbox, ref, ended })),
  };
}

/** Emits an event. A failing observer must not break the sandbox it observes. */
export function emitTo(onEvent: ((event: SandboxEvent) => void) | undefined, event: SandboxEvent): void {
  try {
    onEvent?.(event);
  } catch (error) {
    process.emitWarning(`an observer of sandbox events failed: ${error instanceof Error ? error.message : String(error)}`);
  }
}
