import type { z } from "zod";
import { CaissonError } from "../../contract/error.ts";
import { checkValue, tellProblems } from "../../contract/plain-problems.ts";

/** Which option a part of a request comes from, by the end of its path; `*` is any one name. */
const optionOf: Readonly<Record<string, string>> = {
  "limits.memoryBytes": "memory",
  "limits.cpus": "cpus",
  "limits.pids": "pids",
  "limits.diskBytes": "disk",
  "limits.outputBytes": "output-max",
  "limits.wallClockMs": "timeout",
  "template.reference": "image",
  "workspace.path": "workspace",
  mounts: "mount",
  "mounts.*": "mount",
  "env.*": "env",
  "labels.*": "label",
  labels: "label",
  network: "network",
  "network.rules": "network",
  "secrets.*": "secret",
  "gateway.wires": "gateway",
  "gateway.models": "gateway-models",
  "gateway.models.*": "gateway-models",
  "gateway.costUsdMax": "gateway-cost",
  "gateway.tokensMax": "gateway-tokens",
  "session.id": "session",
  "source.url": "repo",
  "source.path": "repo",
  "source.branch": "branch",
  "source.ref": "ref",
  "source.depth": "depth",
  "source.submodulesFrom": "submodules-from",
  "source.submodulesFrom.*": "submodules-from",
  "settings.image": "image",
  "settings.runtime": "runtime",
  "settings.ociRuntime": "oci-runtime",
  "settings.snapshot": "snapshot",
  "settings.timeoutMs": "timeout",
  "settings.maxSteps": "max-steps",
  "budgets.costUsd": "max-cost",
  "budgets.tokens": "max-tokens",
  name: "name",
  suite: "suite",
  "packages.*": "include",
  mirror: "mirror",
  variant: "variant",
  model: "model",
  task: "task",
};

/** What the options of a command line ask for, checked. Throws `invalid` in the options' own names. */
export function checkOptions<Schema extends z.ZodType>(schema: Schema, asked: z.input<Schema>): z.output<Schema> {
  const parsed = checkValue(schema, asked);
  if (parsed.success) return parsed.data;
  throw new CaissonError("invalid", tellProblems(parsed.problems, nameOf), { hint: "`--help` says what each option takes." });
}

function nameOf(path: readonly PropertyKey[]): string {
  for (let start = 0; start < path.length; start++) {
    const rest = path.slice(start).map(String);
    const option = optionOf[rest.join(".")] ?? optionOf[[...rest.slice(0, -1), "*"].join(".")];
    if (option !== undefined) return option === "task" ? "the task" : `--${option}`;
  }
  return path.join(".");
}
