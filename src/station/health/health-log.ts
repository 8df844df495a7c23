import { CaissonError } from "../../contract/error.ts";
import { makeEvent } from "../../contract/event-family.ts";
import { emptyHealthFacts, type HealthFacts } from "../../contract/health.ts";
import type { HealthSubject, NewHealthEvent } from "../../contract/health-event.ts";
import { type SandboxFacts, sandboxLogEvents } from "../../contract/sandbox-log-event.ts";
import type { Log } from "../../log/log.ts";
import { foundOrNull } from "../names/found-or-null.ts";
import { appendForeign } from "../runs/append-foreign.ts";
import { headOfRun } from "../runs/head-of-run.ts";

/** One that is watched, and the run that it belongs to: its events are in the run's log, else in the sandbox's own. */
export interface SubjectPlace {
  readonly subject: HealthSubject;
  readonly run: string | null;
}

export const sandboxStream = (sandbox: string) => `sandbox/${sandbox}`;
export const sandboxOf = (stream: string) => stream.slice("sandbox/".length);

export interface HealthLog {
  /** As its events tell. A run's sandboxes are one subject: a bound on restarts must outlive each of them. */
  facts(place: SubjectPlace): Promise<HealthFacts>;
  /** Of a run that has ended meanwhile nothing more is told. */
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
      await appendForeign(log, run, () => event).catch(overAlready);
    },
  };
}

/** Whether an error says that the run is over, or was removed. */
export function overAlready(error: unknown): void {
  if (!(error instanceof CaissonError) || (error.code !== "conflict" && error.code !== "not_found")) throw error;
}
