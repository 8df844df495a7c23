import type { SeccompRule } from "./seccomp.ts";

/** Returns what the filter does with a call: the outcomes of all matching rules, or the default. */
export function outcomes(rules: readonly SeccompRule[], name: string, args: readonly bigint[] = []): string[] {
  const matching = rules.filter((rule) => rule.names.includes(name) && (rule.args ?? []).every((arg) => holds(arg, args[arg.index] ?? 0n)));
  const found = matching.map((rule) => (rule.action === "SCMP_ACT_ALLOW" ? "allowed" : `errno ${rule.errnoRet}`));
  return found.length === 0 ? ["errno 38"] : [...new Set(found)];
}

function holds(arg: NonNullable<SeccompRule["args"]>[number], actual: bigint): boolean {
  const value = BigInt(arg.value);
  if (arg.op === "SCMP_CMP_EQ") return actual === value;
  if (arg.op === "SCMP_CMP_GT") return actual > value;
  if (arg.op === "SCMP_CMP_MASKED_EQ") return (actual & value) === BigInt(arg.valueTwo ?? 0);
  throw new Error(`unknown comparison ${arg.op}`);
}
