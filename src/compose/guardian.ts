import type { GuardianVerbs } from "../station/guardian/verbs.ts";
import type { LocalStation } from "../station/local-station.ts";
import { lazyVerbs } from "./lazy-verbs.ts";
import type { StationParts } from "./station.ts";

export function composeGuardian({ stateDir, config }: StationParts, local: () => Promise<LocalStation>): GuardianVerbs {
  return lazyVerbs<GuardianVerbs>({ status: "answer", log: "answer", explain: "answer" }, async () => {
    const { createLocalGuardian } = await import("../station/guardian/local-guardian.ts");
    const { log, alive } = await local();
    return createLocalGuardian({ stateDir, log, alive, config });
  });
}

/** Null where it is switched off: then nothing of it is loaded. */
export async function startGuardianOf(
  parts: StationParts,
  local: () => Promise<LocalStation>,
  onDefect: (error: unknown) => void,
): Promise<AsyncDisposable | null> {
  const settings = parts.config.guardian;
  if (settings.watch === "none") return null;
  const [{ startGuardian }, { resolveModel }, { modelOptions }] = await Promise.all([
    import("../station/guardian/start-guardian.ts"),
    import("../agent/model/resolve-model.ts"),
    import("./local-station.ts"),
  ]);
  const model = (name: string) => resolveModel(name, modelOptions(parts));
  return startGuardian({ local: await local(), settings, model, onDefect });
}
