import type { copyIn, copyOut } from "../../sandbox/copy.ts";
import type { runCommand } from "../../sandbox/run-command.ts";

export type { Copied } from "../../sandbox/copy.ts";

/**
 * What works over the handle of any sandbox, wherever that is: the files and streams outside are this process's own.
 */
export interface SandboxTools {
  runCommand: typeof runCommand;
  copyIn: typeof copyIn;
  copyOut: typeof copyOut;
}
