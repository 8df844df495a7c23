import type { copyIn, copyOut } from "../sandbox/copy.ts";
import type { runCommand } from "../sandbox/run-command.ts";
import type { unpackLayout } from "../sandbox/tar/unpack-layout.ts";

export type { Copied } from "../sandbox/copy.ts";

/**
 * What works with any sandbox handle, local or remote. Files and streams outside the sandbox belong to this process.
 */
export interface SandboxTools {
  runCommand: typeof runCommand;
  copyIn: typeof copyIn;
  copyOut: typeof copyOut;
  unpackLayout: typeof unpackLayout;
}
