import { isDeepStrictEqual } from "node:util";
import { CaissonError } from "../contract/error/error.ts";
import { checkValue, tellProblems } from "../contract/error/plain-problems.ts";
import { type Capabilities, SandboxConfig, type SandboxConfigInput } from "../contract/sandbox/sandbox.ts";
import { fieldOptions, unsetFields } from "../contract/sandbox/sandbox-field-options.ts";
import { type SandboxField, sandboxFieldNames } from "../contract/sandbox/sandbox-fields.ts";
import type { ForkOptions } from "./sandbox.ts";

/** Parses a caller's configuration and fills in defaults. Throws `invalid` with what is wrong where. */
export function parseSandboxConfig(input: SandboxConfigInput): SandboxConfig {
  const parsed = checkValue(SandboxConfig, input);
  if (parsed.success) return parsed.data;
  throw new CaissonError("invalid", `invalid sandbox configuration: ${tellProblems(parsed.problems)}`);
}

/**
 * Returns the config of a fork. It has no layer, because the snapshot contains the layer's files and two sandboxes must
 * never share a layer. It has no name, because a name belongs to one sandbox.
 */
export function configOfFork({ name: _, ...config }: SandboxConfig, { keep = config.keep }: ForkOptions): SandboxConfig {
  if (config.workspace.kind !== "folder") return { ...config, keep };
  const { layer: __, view: ___, ...workspace } = config.workspace;
  return { ...config, keep, workspace };
}

/** Returns the fields of a config that differ from another one, such as one with all defaults. */
export function changedFields(config: SandboxConfig, base: Partial<SandboxConfig>): SandboxField[] {
  return sandboxFieldNames.filter((name) => !isDeepStrictEqual(config[name], base[name]));
}

/**
 * Throws `unsupported` for any requested field that a runtime does not know, such as one newer than the runtime,
 * instead of ignoring it.
 */
export function refuseOtherFields(config: SandboxConfig, { runtime, known }: { runtime: string; known: readonly SandboxField[] }): void {
  const other = changedFields(config, unsetFields()).find((name) => !known.includes(name));
  if (other === undefined) return;
  const option = fieldOptions[other].options[0];
  throw new CaissonError("unsupported", `the ${runtime} runtime cannot enforce ${option === undefined ? other : `--${option.name}`}`, {
    hint: "Omit it, or use the oci or docker runtime.",
  });
}

/** Throws `unsupported` for runtimes that store no workspace changes on the host. */
export function refuseLayer(config: SandboxConfig, runtime: string): void {
  if (config.workspace.kind !== "folder" || config.workspace.layer === undefined) return;
  throw new CaissonError("unsupported", `the ${runtime} runtime cannot store a workspace's changes in a host folder`, {
    hint: "Omit the layer and take a snapshot instead.",
  });
}

/** Throws `unsupported` for a policy, a secret or a gateway that the runtime cannot enforce here. */
export function refuseNetwork(
  {
    network,
    secrets,
    gateway,
    stationAccess = false,
  }: Pick<SandboxConfig, "network" | "secrets" | "gateway"> & Partial<Pick<SandboxConfig, "stationAccess">>,
  capabilities: Pick<Capabilities, "network" | "transparentNetwork" | "reasons">,
): void {
  const carries = capabilities.network.includes("allow");
  // `none` is accepted: a runtime that cannot enforce it reports that in the sandbox's warnings.
  const mode = network.mode === "none" || capabilities.network.includes(network.mode) ? null : network.mode;
  const features = [
    ["secrets", Object.keys(secrets).length > 0],
    ["gateway", gateway !== undefined],
    ["station access", stationAccess],
  ] as const;
  const refused = mode ?? (carries ? null : (features.find(([, isAsked]) => isAsked)?.[0] ?? null));
  if (refused !== null) {
    throw new CaissonError("unsupported", `this runtime cannot enforce a network policy (${refused})`, {
      hint: capabilities.reasons.network ?? "Use the oci or docker runtime.",
    });
  }
  if (network.mode !== "none" && network.transparent && !capabilities.transparentNetwork) {
    throw new CaissonError("unsupported", "this runtime has no transparent proxy", {
      hint: capabilities.reasons.transparentNetwork ?? "Omit the transparent mode, or use the oci runtime.",
    });
  }
}
