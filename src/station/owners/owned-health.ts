import type { HealthView } from "../../contract/health.ts";
import type { OwnerView } from "../../contract/owner.ts";
import type { HealthVerbs } from "../health/verbs.ts";
import { oneOf } from "../names/one-of.ts";
import type { Station } from "../station.ts";
import { decide } from "./decide.ts";
import { isThere, type OwnThings } from "./own-things.ts";

/**
 * The station itself is everybody's; sandboxes and runs are their owner's, and incidents stay theirs when those are
 * gone.
 */
export function ownedHealth({ health }: Pick<Station, "health">, { owner, sees, own }: OwnerView & { own: OwnThings }): HealthVerbs {
  if (sees === "everything") return health;
  const isOwn = async ({ subject, run }: HealthView): Promise<boolean> => {
    if (subject.kind === "station") return true;
    return await isThere(run === null ? own.sandbox(subject.id) : own.run(run));
  };
  const incidents = async () => (await health.incidents()).filter((incident) => incident.owner === owner);
  return decide(health, {
    async list() {
      const { watched, subjects } = await health.list();
      const judged = await Promise.all(subjects.map(async (each) => ((await isOwn(each)) ? [each] : [])));
      return { watched, subjects: judged.flat() };
    },
    incidents,
    async incident(id) {
      const found = (await incidents()).filter((each) => each.id.startsWith(id));
      return await health.incident(oneOf(id, found, { what: "incident", listedBy: "caisson incident ls" }));
    },
  });
}
