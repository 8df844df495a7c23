import { CaissonError } from "../../contract/error/error.ts";
import { foundOrNull } from "../../contract/error/found-or-null.ts";
import { makeEvent } from "../../contract/event/event-family.ts";
import { emptyHealthFacts, type HealthFacts } from "../../contract/health/health.ts";
import type { HealthSubject, NewHealthEvent } from "../../contract/health/health-event.ts";
import { type SandboxFacts, sandboxLogEvents } from "../../contract/sandbox/sandbox-log-event.ts";
import type { Log } from "../../log/log.ts";
import { appendUnowned } from "../vocabulary/append-unowned.ts";
import { headOfRun } from "../vocabulary/head-of-run.ts";
import { sandboxStream } from "../vocabulary/station-names.ts";

/**
 * A watched subject and the run that it belongs to. Its events are in the run log, or in the sandbox log if there is no
 * run.
 */
export interface SubjectPlace {
  readonly subject: HealthSubject;
  readonly run: string | null;
}

export interface HealthLog {
  /**
   * Returns the facts from its events. All sandboxes of a run count as one subject, because the limit on restarts must
   * outlive each sandbox.
   */
  facts(place: SubjectPlace): Promise<HealthFacts>;
  /** Records nothing if the run has ended. */
  append(place: SubjectPlace, event: NewHealthEvent): Promise<void>;
}

export function createHealthLog(log: Log): HealthLog {
  const ofRun = async ({ run, subject }: SubjectPlace): Promise<HealthFacts | null> => {
    if (run === null) return null;
    const head = await foundOrNull(headOfRun(log, run));
    return head?.facts.health[subject.kind] ?? null;
  };
  return {
    async facts(place) {
      const found = await ofRun(place);
      if (found !== null) return found;
      const head = await log.head(sandboxStream(place.subject.id));
      return (head?.head as unknown as SandboxFacts | undefined)?.health ?? emptyHealthFacts();
    },
    async append({ run, subject }, event) {
      if (run === null) return void (await log.append(sandboxStream(subject.id), [makeEvent(sandboxLogEvents, event)]));
      await appendUnowned(log, run, () => event).catch(rethrowUnlessEnded);
    },
  };
}

/** Ignores errors which show that the run has ended or was removed, and throws others. */
export function rethrowUnlessEnded(error: unknown): void {
  if (!(error instanceof CaissonError) || (error.code !== "conflict" && error.code !== "not_found")) throw error;
}
