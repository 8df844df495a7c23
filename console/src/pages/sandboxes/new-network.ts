import type { SandboxSpecInput } from "../../../../src/contract/sandbox.ts";

export const networkChoices = [
  { value: "none", label: "None" },
  { value: "packages", label: "Package registries only" },
  { value: "hosts", label: "These hosts and registries" },
  { value: "open", label: "Every public address" },
] as const;

const registries = ["npm", "pypi", "debian", "crates", "go"] as const;

/** What a choice of the form stands for. Hosts are apart by blanks or commas; the station judges what they look like. */
export function policyOf(choice: string, hosts: string): NonNullable<SandboxSpecInput["network"]> {
  if (choice === "open") return { mode: "open" };
  if (choice === "packages") return { mode: "allow", registries: [...registries] };
  if (choice !== "hosts") return { mode: "none" };
  const rules = hosts
    .split(/[\s,]+/)
    .filter(Boolean)
    .map((host) => ({ host }));
  return { mode: "allow", rules, registries: [...registries] };
}
