import { defaultLimits } from "../../contract/default-limits.ts";
import type { CreateSandbox } from "../../contract/sandbox-verbs.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";

/** Options that are the command's, and those that ask of a sandbox what needs no check. */
const plainOptions = new Set("context no-station tty interactive json quiet detach cwd user keep no-workspace".split(" "));

/**
 * The sandbox of a command that asks nothing of it, as most do: the same as `sandboxFrom` makes, without the schemas
 * that check what was asked. Null where something was.
 */
export function plainSandbox({ cwd, config }: CliContext, given: ParsedArguments, { keep }: { keep: boolean }): CreateSandbox | null {
  const isPlain = given.optionNames.every((name) => plainOptions.has(name));
  if (!isPlain || (config.image !== undefined && config.image !== "host")) return null;
  return {
    spec: {
      template: { kind: "host" },
      workspace: given.flag("no-workspace") ? { kind: "empty" } : { kind: "folder", path: cwd, access: "overlay" },
      mounts: [],
      limits: config.limits,
      network: { mode: "none" },
      secrets: {},
      stationAccess: false,
      env: {},
      allowRoot: false,
      readOnlyPaths: [],
      deniedPaths: [],
      tmpBytes: defaultLimits.tmpBytes,
      keep,
      labels: {},
    },
    secretNames: [],
    guard: { ...config.workspace, named: false, allowHooks: false },
  };
}
