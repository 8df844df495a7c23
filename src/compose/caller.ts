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
}

/** The names of those whose values would be taken from the environment of whoever serves the sandbox. */
export function secretsOfCaller(secrets: Readonly<Record<string, SecretSpec>>): string[] {
  return Object.entries(secrets).flatMap(([name, { from }]) => (from === "env" || "env" in from || "command" in from ? [name] : []));
}

export function notSent(names: readonly string[]): CaissonError {
  return new CaissonError("unsupported", `the secret ${names.join(", ")} is in this machine's environment, and the station is elsewhere`, {
    hint: "Define it in the configuration of the station's machine, and name it there.",
  });
}
