import { CaissonError } from "../contract/error.ts";
import { checkValue, tellProblems } from "../contract/plain-problems.ts";
import { type Capabilities, SandboxSpec, type SandboxSpecInput } from "../contract/sandbox.ts";
import type { ForkOptions } from "./sandbox.ts";

/** What a caller asks for, checked and complete. Throws `invalid` with what is wrong where. */
export function parseSpec(input: SandboxSpecInput): SandboxSpec {
  const parsed = checkValue(SandboxSpec, input);
  if (parsed.success) return parsed.data;
  throw new CaissonError("invalid", `the sandbox's spec is not valid: ${tellProblems(parsed.problems)}`);
}

/**
 * Of a fork: its snapshot holds what the layer held, which two sandboxes must never share; and a name stands for one
 * sandbox alone.
 */
export function forkedSpec({ name: _, ...given }: SandboxSpec, { keep = given.keep }: ForkOptions): SandboxSpec {
  const spec = { ...given, keep };
  if (spec.workspace.kind !== "folder") return spec;
  const { layer: __, ...workspace } = spec.workspace;
  return { ...spec, workspace };
}

/** For runtimes that keep a workspace's changes nowhere on the host. Throws `unsupported`. */
export function refuseLayer(spec: SandboxSpec, runtime: string): void {
  if (spec.workspace.kind !== "folder" || spec.workspace.layer === undefined) return;
  throw new CaissonError("unsupported", `the ${runtime} runtime cannot keep a workspace's changes in a folder of the host's`, {
    hint: "Leave the layer out and take a snapshot instead.",
  });
}

/** Throws `unsupported` for a policy, a secret or a gateway that a runtime cannot enforce here. */
export function refuseNetwork(
  {
    network,
    secrets,
    gateway,
    stationAccess = false,
  }: Pick<SandboxSpec, "network" | "secrets" | "gateway"> & Partial<Pick<SandboxSpec, "stationAccess">>,
  capabilities: Pick<Capabilities, "network" | "transparentNetwork" | "reasons">,
): void {
  const carries = capabilities.network.includes("allow");
  // `none` is not refused: a runtime that cannot enforce it says so in the sandbox's warnings.
  const mode = network.mode === "none" || capabilities.network.includes(network.mode) ? null : network.mode;
  const asked = [
    ["secrets", Object.keys(secrets).length > 0],
    ["gateway", gateway !== undefined],
    ["station access", stationAccess],
  ] as const;
  const refused = mode ?? (carries ? null : (asked.find(([, isAsked]) => isAsked)?.[0] ?? null));
  if (refused !== null) {
    throw new CaissonError("unsupported", `the network (${refused}) cannot be enforced by this runtime`, {
      hint: capabilities.reasons.network ?? "Use the oci or the docker runtime.",
    });
  }
  if (network.mode !== "none" && network.transparent && !capabilities.transparentNetwork) {
    throw new CaissonError("unsupported", "this runtime cannot carry programs that know nothing of proxies", {
      hint: capabilities.reasons.transparentNetwork ?? "Leave the transparent mode out, or use the oci runtime.",
    });
  }
}
