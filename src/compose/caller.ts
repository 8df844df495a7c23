import { CaissonError } from "../contract/error.ts";
import type { SecretSpec } from "../contract/network.ts";
import type { StationHere } from "./here.ts";
import type { LocalParts } from "./local-station.ts";

/** Whoever calls: where they stand, and what is theirs. */
export type Caller = Pick<LocalParts, "cwd" | "home" | "path" | "configDir" | "configFile" | "config" | "stateDir" | "say">;

export interface CallersOptions {
  /** This process as a station. */
  here: () => Promise<StationHere>;
  caller: Caller;
  isElsewhere: boolean;
  /** With which of this machine's OCI runtimes this process would work, where that was said. */
  ociRuntime?: string | undefined;
}

/**
 * The names of those whose values are the caller's alone: in its environment, or, for a station elsewhere, in a file of
 * this machine. What is merely named is looked up there; a station of this machine shares the configuration, and not
 * the environment.
 */
export function secretsOfCaller(
  asked: { secrets: Readonly<Record<string, SecretSpec>>; secretNames?: readonly string[] | undefined },
  { caller, isElsewhere }: Pick<CallersOptions, "caller" | "isElsewhere">,
): string[] {
  const { secretNames = [] } = asked;
  const configured = isElsewhere ? [] : Object.entries(caller.config.secrets).filter(([name]) => secretNames.includes(name));
  return [...Object.entries(asked.secrets), ...configured].flatMap(([name, { from }]) => {
    const isFile = typeof from === "object" && "file" in from;
    return !isFile || isElsewhere ? [name] : [];
  });
}

export function notSent(names: readonly string[]): CaissonError {
  const [first = ""] = names;
  return new CaissonError("unsupported", `the value of the secret ${names.join(", ")} is on this machine, and the station is elsewhere`, {
    hint: `Keep it at the station, \`caisson secret set ${first}@HOST\`, and name it: --secret ${first}`,
  });
}

export function ociRuntimeElsewhere(ociRuntime: string): CaissonError {
  return new CaissonError("unsupported", `--oci-runtime ${ociRuntime} is a program of this machine, and the station is elsewhere`, {
    hint: "Leave it out, set ociRuntime in the configuration of the station's machine, or do the work here: --no-station",
  });
}
