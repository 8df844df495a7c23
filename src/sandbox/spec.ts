import { z } from "zod";
import { CaissonError } from "../contract/error.ts";
import { SandboxSpec, type SandboxSpecInput } from "../contract/sandbox.ts";

/** What a caller asks for, checked and complete. Throws `invalid` with what is wrong where. */
export function parseSpec(input: SandboxSpecInput): SandboxSpec {
  const parsed = SandboxSpec.safeParse(input);
  if (parsed.success) return parsed.data;
  throw new CaissonError("invalid", `the sandbox's spec is not valid:\n${z.prettifyError(parsed.error)}`);
}

/** For runtimes that keep a workspace's changes nowhere on the host. Throws `unsupported`. */
export function refuseLayer(spec: SandboxSpec, runtime: string): void {
  if (spec.workspace.kind !== "folder" || spec.workspace.layer === undefined) return;
  throw new CaissonError("unsupported", `the ${runtime} runtime cannot keep a workspace's changes in a folder of the host's`, {
    hint: "Leave the layer out and take a snapshot instead.",
  });
}
