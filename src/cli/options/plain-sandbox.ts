import { unsetFields } from "../../contract/sandbox/sandbox-field-options.ts";
import type { CreateSandbox } from "../../contract/sandbox/sandbox-verbs.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";

/** Options of the command itself, and sandbox options that need no check. */
const plainOptions = new Set("context no-station tty interactive json quiet detach cwd user keep no-workspace".split(" "));

/**
 * Returns the sandbox of a command without special options, the most common case. The result is the same as from
 * `parseSandboxOptions`, but this function loads no schemas. Returns null if an option or a configured image requires a
 * check.
 */
export function plainSandbox({ cwd, config }: CliContext, args: ParsedArguments, { keep }: { keep: boolean }): CreateSandbox | null {
  const isPlain = args.optionNames.every((name) => plainOptions.has(name));
  if (!isPlain || (config.image !== undefined && config.image !== "host")) return null;
  return {
    spec: {
      ...unsetFields(),
      template: { kind: "host" },
      workspace: args.flag("no-workspace") ? { kind: "empty" } : { kind: "folder", path: cwd, access: "overlay" },
      limits: config.limits,
      keep,
      labels: {},
    },
    secretNames: [],
    guard: { ...config.workspace, named: false, allowHooks: false },
  };
}
