import type { SandboxConfigInput } from "../../../../src/contract/sandbox/sandbox.ts";

export const networkChoices = [
  { value: "none", label: "None" },
  { value: "packages", label: "Package registries only" },
  { value: "hosts", label: "These hosts and registries" },
  { value: "open", label: "Every public address" },
] as const;

const registries = ["npm", "pypi", "debian", "crates", "go"] as const;

/** Returns the policy for a choice of the form. Spaces or commas separate hosts; the station validates them. */
export function policyOf(choice: string, hosts: string): NonNullable<SandboxConfigInput["network"]> {
  if (choice === "open") return { mode: "open" };
  if (choice === "packages") return { mode: "allow", registries: [...registries] };
  if (choice !== "hosts") return { mode: "none" };
  const rules = hosts
    .split(/[\s,]+/)
    .filter(Boolean)
    .map((host) => ({ host }));
  return { mode: "allow", rules, registries: [...registries] };
}
