import { CaissonError } from "../contract/error.ts";
import type { CliContext } from "./context.ts";

/** The run, or the session, that was named; the run that changed last, when none was. Throws `not_found`. */
export async function runNamed({ station }: CliContext, name: string | undefined): Promise<string> {
  if (name !== undefined) return name;
  const { runs } = await station.runs.list({ limit: 1 });
  const [newest] = runs;
  if (!newest) throw new CaissonError("not_found", "there is no run yet", { hint: 'Start one: caisson run "…"' });
  return newest.run;
}
