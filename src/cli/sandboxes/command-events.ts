import type { Ended } from "../../contract/outcome.ts";
import { CommandEnded, CommandOutput } from "../../contract/sandbox/sandbox-event.ts";
import { textOrBase64 } from "../../lib/text-or-base64.ts";
import type { OutputChunk } from "../../verbs/held-sandbox.ts";

/** The identity of a command in its events. */
export interface CommandName {
  sandbox: string;
  ref: string;
}

/**
 * Returns the event that `exec --json` prints for a piece of output. In a separate module because plain `exec` needs no
 * events.
 */
export function outputEvent(of: CommandName, { stream, offset, data }: OutputChunk) {
  return CommandOutput.make({ ...of, stream, offset, ...textOrBase64(data) });
}

export function endedEvent(of: CommandName, ended: Ended) {
  return CommandEnded.make({ ...of, ended });
}
