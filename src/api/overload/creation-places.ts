import type { RouteName } from "../../verbs/routes.ts";
import { overloadError } from "./refuse-request.ts";
import { createRequestScheduler, creationPace, type RequestScheduler } from "./request-scheduler.ts";

/** Calls that write a durable job to the log before they answer, which takes several disk writes. */
const creations: ReadonlySet<RouteName> = new Set([
  "runs.start",
  "workflows.start",
  "specs.create",
  "ships.start",
  "merges.start",
  "bests.start",
]);

/** Limits how many durable jobs are created at once: more would only wait for each other, and all of them longer. */
export interface CreationPlaces extends Disposable {
  /**
   * Takes a place for a call of this route, until disposal. Null for calls that need none. Throws `busy`, and
   * `unavailable` if it would wait too long. Take it after the body was read, so that a slow sender holds no place.
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
