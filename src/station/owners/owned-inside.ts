import { SandboxId } from "../../contract/ids.ts";
import type { OwnerView } from "../../contract/owner.ts";
import type { InsideVerbs } from "../inside/verbs.ts";
import type { Station } from "../station.ts";
import { decide } from "./decide.ts";
import type { OwnThings } from "./own-things.ts";

export function ownedInside({ inside }: Pick<Station, "inside">, view: OwnerView & { own: OwnThings }): InsideVerbs {
  const { own, owner, sees } = view;
  /** One that is gone is found by its id alone. */
  const seen = async (word: string) => (SandboxId.safeParse(word).success ? word : await own.sandbox(word));
  const whose = sees === "own" ? { owner } : {};
  return decide(inside, {
    report: async (sandbox, event) => await inside.report(await own.sandbox(sandbox), event),
    takeMessages: async (sandbox) => await inside.takeMessages(await own.sandbox(sandbox)),
    beat: async (sandbox) => await inside.beat(await own.sandbox(sandbox)),
    putArtifact: async (sandbox, name, data) => await inside.putArtifact(await own.sandbox(sandbox), name, data),
    view: async (sandbox) => await inside.view(await own.sandbox(sandbox)),
    tell: async (sandbox, request, options) => await inside.tell(await own.sandbox(sandbox), request, options),
    events: async (sandbox, options) => await inside.events(await seen(sandbox), { ...options, ...whose }),
    async *follow(sandbox, options) {
      yield* inside.follow(await seen(sandbox), { ...options, ...whose });
    },
    artifacts: async (thing) => await inside.artifacts(await own.network(thing)),
    readArtifact: async (thing, name) => await inside.readArtifact(await own.network(thing), name),
  });
}
