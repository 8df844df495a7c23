import { CommandEnded, CommandOutput } from "../../contract/event.ts";
import type { Ended } from "../../contract/outcome.ts";
import { textOrBase64 } from "../../lib/text-or-base64.ts";
import type { OutputChunk } from "../../station/sandboxes/held-sandbox.ts";

/** A command, as its events name it. */
export interface CommandName {
  sandbox: string;
  ref: string;
}

/** What `exec --json` prints of a command's output. Loaded for that alone: nothing else of `exec` has events. */
export function outputEvent(of: CommandName, { stream, offset, data }: OutputChunk) {
  return CommandOutput.make({ ...of, stream, offset, ...textOrBase64(data) });
}

export function endedEvent(of: CommandName, ended: Ended) {
  return CommandEnded.make({ ...of, ended });
}
