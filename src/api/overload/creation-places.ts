import type { RouteName } from "../../contract/api/paths.ts";
import { overloadError } from "./refuse-request.ts";
import { createRequestScheduler, creationPace, type RequestScheduler } from "./request-scheduler.ts";

/** They write a durable job to the log before they answer, which takes several writes to the disk. */
const creations: ReadonlySet<RouteName> = new Set(["runs.start", "workflows.start", "specs.create", "ships.start", "merges.start"]);

/** Few durable jobs are created at once: more would only wait for each other, and all of them for long. */
export interface CreationPlaces extends Disposable {
  /**
   * A place for a call of this route, until it is disposed of. Null for one that needs none. Throws `busy`,
   * `unavailable` where it would wait too long. To be taken after the body was read: a caller that sends slowly holds
   * none.
   */
  take(name: RouteName, key: string): Promise<Disposable | null>;
  figures: RequestScheduler["figures"];
}

export function createCreationPlaces({ loopDelayMs }: { loopDelayMs: () => number }): CreationPlaces {
  const scheduler = createRequestScheduler({ loopDelayMs, pace: creationPace });
  return {
    async take(name, key) {
      if (!creations.has(name)) return null;
      return await new Promise<Disposable>((resolve, reject) => {
        scheduler.submit({
          kind: "work",
          key,
          start: (done) => resolve({ [Symbol.dispose]: done }),
          refuse: (refusal) => reject(overloadError(refusal)),
        });
      });
    },
    figures: () => scheduler.figures(),
    [Symbol.dispose]: () => scheduler[Symbol.dispose](),
  };
}
