import { CaissonError } from "../contract/error/error.ts";
import type { SecretConfig } from "../contract/network/network.ts";
import type { InProcessStation } from "./in-process-station.ts";
import type { LocalParts } from "./local-parts.ts";

/** The caller's current folder, settings and places. */
export type Caller = Pick<LocalParts, "cwd" | "home" | "path" | "configDir" | "configFile" | "config" | "stateDir" | "say">;

export interface ClientSideOptions {
  /** Opens a station within this process. */
  here: () => Promise<InProcessStation>;
  caller: Caller;
  isElsewhere: boolean;
  /** The OCI runtime of this machine that the caller chose, if any. */
  ociRuntime?: string | undefined;
}

/**
 * Returns the names of the secrets whose values only the caller has: in its environment or, for a remote station, in a
 * file of this machine. Secrets given only by name are looked up in the configuration: a station on this machine shares
 * the configuration, but not the environment.
 */
export function secretsOfCaller(
  request: { secrets: Readonly<Record<string, SecretConfig>>; secretNames?: readonly string[] | undefined },
  { caller, isElsewhere }: Pick<ClientSideOptions, "caller" | "isElsewhere">,
): string[] {
  const { secretNames = [] } = request;
  const configured = isElsewhere ? [] : Object.entries(caller.config.secrets).filter(([name]) => secretNames.includes(name));
  return [...Object.entries(request.secrets), ...configured].flatMap(([name, { from }]) => {
    const isFile = typeof from === "object" && "file" in from;
    return !isFile || isElsewhere ? [name] : [];
  });
}

export function notSent(names: readonly string[]): CaissonError {
  const [first = ""] = names;
  return new CaissonError("unsupported", `the value of the secret ${names.join(", ")} is on this machine, but the station is remote`, {
    hint: `Store it on the station with \`caisson secret set ${first}@HOST\`, then name it: --secret ${first}`,
  });
}

export function ociRuntimeElsewhere(ociRuntime: string): CaissonError {
  return new CaissonError("unsupported", `--oci-runtime ${ociRuntime} is a program of this machine, but the station is remote`, {
    hint: "Omit it, set ociRuntime in the configuration of the station's machine, or work in this process: --no-station",
  });
}
