import type { HealthView } from "../../contract/health.ts";
import type { OwnerView } from "../../contract/owner.ts";
import type { HealthVerbs } from "../health/verbs.ts";
import { oneOf } from "../names/one-of.ts";
import type { Station } from "../station.ts";
import { decide } from "./decide.ts";
import { isThere, type OwnThings } from "./own-things.ts";

/** The station itself is everybody's; sandboxes and runs are their owner's, and what is left of them, too. */
export function ownedHealth({ health }: Pick<Station, "health">, { sees, own }: OwnerView & { own: OwnThings }): HealthVerbs {
  if (sees === "everything") return health;
  const isOwn = async ({ subject, run }: Pick<HealthView, "run"> & { subject: { kind: string; id: string } }): Promise<boolean> => {
    if (subject.kind === "station") return true;
    return await isThere(run === null ? own.sandbox(subject.id) : own.run(run));
  };
  const onlyOwn = async <Item extends Parameters<typeof isOwn>[0]>(items: readonly Item[]): Promise<Item[]> => {
    const judged = await Promise.all(items.map(async (item) => ((await isOwn(item)) ? [item] : [])));
    return judged.flat();
  };
  return decide(health, {
    async list() {
      const { watched, subjects } = await health.list();
      return { watched, subjects: await onlyOwn(subjects) };
    },
    incidents: async () => await onlyOwn(await health.incidents()),
    async incident(id) {
      const found = (await onlyOwn(await health.incidents())).filter((each) => each.id.startsWith(id));
      return await health.incident(oneOf(id, found, { what: "incident", listedBy: "caisson health" }));
    },
  });
}
