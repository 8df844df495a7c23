import { CaissonError } from "../../contract/error/error.ts";
import type { NamedThing } from "../../contract/machine/machine-verbs.ts";
import type { Station } from "../../verbs/station.ts";
import { oneOf } from "./one-of.ts";

/** See `MachineVerbs.find`. */
export async function resolveId(
  word: string,
  { sandboxes, sessions, runs }: Pick<Station, "sandboxes" | "sessions" | "runs">,
): Promise<NamedThing> {
  const looks: Record<NamedThing["kind"], () => Promise<string>> = {
    sandbox: async () => (await sandboxes.get(word)).id,
    run: async () => (await runs.get(word)).run,
    session: async () => {
      const { id } = await sessions.get(word);
      // A run's name also finds its session; the run takes precedence.
      if (id === word) return id;
      throw new CaissonError("not_found", `there is no session ${word}`);
    },
    snapshot: async () => {
      const found = (await sandboxes.snapshots()).snapshots.filter(
        ({ id, name }) => name === word || (word.startsWith("sn_") && id.startsWith(word)),
      );
      return oneOf(word, found, { what: "snapshot", listedBy: "caisson snapshot ls" });
    },
  };
  const prefix = /^(sb|sn|run)_/.exec(word)?.[1];
  if (prefix !== undefined) {
    const kind = ({ sb: "sandbox", sn: "snapshot", run: "run" } as const)[prefix as "sb" | "sn" | "run"];
    return { kind, id: await looks[kind]() };
  }
  const found: NamedThing[] = [];
  for (const [kind, look] of Object.entries(looks) as [NamedThing["kind"], () => Promise<string>][]) {
    const id = await look().catch(ifNotThere);
    if (id !== null) found.push({ kind, id });
  }
  if (found.length === 0) {
    throw new CaissonError("not_found", `nothing is named ${word}`, {
      hint: "`caisson sandbox ls`, `ps --all`, `session ls` and `snapshot ls` list what exists.",
    });
  }
  const candidates = found.map((each) => ({ id: each.id, name: each.kind }));
  const id = oneOf(word, candidates, { what: "thing", listedBy: "caisson sandbox ls" });
  return found.find((each) => each.id === id) as NamedThing;
}

function ifNotThere(error: unknown): null {
  if (
    error instanceof CaissonError &&
    (error.code === "not_found" || (error.code === "invalid" && error.details?.candidates === undefined))
  )
    return null;
  throw error;
}
