import { CaissonError } from "../contract/error/error.ts";
import type { Station } from "../verbs/station.ts";
import type { Completed } from "./command.ts";

/** The user is waiting for completion, so the newest runs are enough. */
const RUNS_MAX = 100;

type Kind = Exclude<Completed, "file">;

/** Returns the ids and names that complete a word on the command line. Throws `invalid` for an unknown kind. */
export async function completedWords(station: Station, kinds: string): Promise<string[]> {
  const found: string[] = [];
  for (const kind of kinds.split(",")) {
    const list = Object.hasOwn(wordsOf, kind) ? wordsOf[kind as Kind] : undefined;
    if (list === undefined) {
      throw new CaissonError("invalid", `--words ${JSON.stringify(kind)} is not one of ${Object.keys(wordsOf).join(", ")}`);
    }
    found.push(...(await list(station)));
  }
  return [...new Set(found)];
}

const wordsOf: Record<Kind, (station: Station) => Promise<string[]>> = {
  async sandbox({ sandboxes }) {
    const list = await sandboxes.list({ sweep: false });
    return [...list.sandboxes, ...list.damaged].flatMap((each) => withName(each.id, "name" in each ? each.name : null));
  },
  run: async ({ runs }) => (await runs.list({ limit: RUNS_MAX })).runs.flatMap(({ run, name }) => withName(run, name)),
  session: async ({ sessions }) => (await sessions.list()).sessions.map(({ id }) => id),
  template: async ({ templates }) => (await templates.list()).flatMap(({ id, names }) => [...names, id]),
  snapshot: async ({ sandboxes }) =>
    (await sandboxes.snapshots()).snapshots.flatMap(({ id, name }) => withName(id, isWord(name) ? name : null)),
};

/** Names come first because they are easier to type than ids. */
const withName = (id: string, name: string | null | undefined) => (name ? [name, id] : [id]);

/** Caisson names the snapshots of sessions itself, and users do not type those names. */
const isWord = (name: string | null) => name !== null && /^[a-z0-9._-]+$/.test(name);
