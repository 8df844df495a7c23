import { CaissonError } from "../contract/error.ts";
import { SandboxId } from "../contract/ids.ts";
import type { Runtime } from "../sandbox/runtime.ts";
import type { OwnedSandbox, SandboxNetwork } from "../sandbox/sandbox.ts";
import { createStore } from "../sandbox/store.ts";
import type { CliContext } from "./context.ts";
import { openStation } from "./station.ts";

/** The sandbox of a run that lives, or the one that was named. Throws `not_found`, and `conflict` for a run without one. */
export async function sandboxNamed(context: CliContext, name: string): Promise<SandboxId> {
  if (SandboxId.safeParse(name).success) return name;
  await using station = openStation(context);
  const facts = await station.runs.facts(name);
  if (facts.status === "ended" || facts.sandbox === null) {
    const what = facts.status === "ended" ? "has ended, and its sandbox with it" : "has no sandbox yet";
    throw new CaissonError("conflict", `the run ${name} ${what}`, { hint: `\`caisson logs ${name}\` shows what it did.` });
  }
  return facts.sandbox.id;
}

/** Throws `unsupported` where there is none. */
export async function networkNamed(context: CliContext, name: string): Promise<{ id: SandboxId; network: SandboxNetwork }> {
  const id = await sandboxNamed(context, name);
  const { network } = await openSandbox(context, id);
  if (network === null) throw new CaissonError("unsupported", `the runtime of ${id} has no network of its own`);
  return { id, network };
}

export function checkSandboxId(text: string): SandboxId {
  const parsed = SandboxId.safeParse(text);
  if (parsed.success) return parsed.data;
  throw new CaissonError("invalid", `${JSON.stringify(text)} is not a sandbox's id`, {
    hint: "An id looks like sb_k3v7q2m5x4ab; `caisson sandbox ls` lists them.",
  });
}

/** Throws `invalid`, `not_found`, `lost`. */
export async function openSandbox(context: CliContext, id: string): Promise<OwnedSandbox> {
  return (await runtimeOf(context, id)).open(checkSandboxId(id));
}

/** The runtime that a sandbox was made by, from its record. */
export async function runtimeOf(context: CliContext, id: string): Promise<Runtime> {
  const record = await createStore({ stateDir: context.stateDir }).read(checkSandboxId(id));
  return context.runtimes.get(record.runtime);
}
