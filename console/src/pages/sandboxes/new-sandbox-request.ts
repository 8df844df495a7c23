import type { SandboxConfigInput } from "../../../../src/contract/sandbox/sandbox.ts";
import type { CreateSandbox } from "../../../../src/contract/sandbox/sandbox-verbs.ts";
import { policyOf } from "./new-network.ts";

const MIB = 1024 * 1024;

type Request = Pick<CreateSandbox, "runtime" | "guard"> & { spec: SandboxConfigInput };

/** Converts the form's fields to a request, or returns what is wrong with them. The station validates the rest. */
export function sandboxOf(
  field: (name: string) => string,
  { runtime, network }: { runtime: string; network: string },
): { request: Request; problem: null } | { request: null; problem: string } {
  const [cpus, memory, disk] = [field("cpus"), field("memory"), field("disk")];
  for (const [name, value] of Object.entries({ CPUs: cpus, Memory: memory, Disk: disk }))
    if (value !== "" && !(Number(value) > 0)) return { request: null, problem: `${name} must be a number above 0.` };
  const [name, image, folder] = [field("name"), field("image"), field("folder")];
  return {
    problem: null,
    request: {
      ...(runtime !== "" && { runtime }),
      // The same guard as for a folder that is named on the command line.
      ...(folder !== "" && { guard: { named: true, hide: [], show: [], allowHooks: false } }),
      spec: {
        ...(name !== "" && { name }),
        ...(image !== "" && { template: { kind: "image", reference: image } }),
        ...(folder !== "" && { workspace: { kind: "folder", path: folder } }),
        limits: {
          ...(cpus !== "" && { cpus: Number(cpus) }),
          ...(memory !== "" && { memoryBytes: Math.round(Number(memory) * MIB) }),
          ...(disk !== "" && { diskBytes: Math.round(Number(disk) * MIB) }),
        },
        network: policyOf(network, field("hosts")),
        labels: { from: "console", ...labelsIn(field("labels")) },
      },
    },
  };
}

function labelsIn(text: string): Record<string, string> {
  const pairs = text
    .split(",")
    .map((each) => each.trim())
    .filter((each) => each !== "");
  return Object.fromEntries(
    pairs.map((pair) => {
      const [key = "", ...value] = pair.split("=");
      return [key.trim(), value.join("=").trim()];
    }),
  );
}
