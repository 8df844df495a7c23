import { z } from "zod";
import type { JobList, JobView, ListJobs } from "../contract/durable/durable-job.ts";
import { type OwnedThing, verb } from "./verb.ts";

/** The longest wait of one request, below the timeouts of common proxies. */
const WAIT_MS_MAX = 25_000;

/** The input of a verb of kind `wait`: after `timeoutMs` it answers with the current state. */
export const WaitQuery = z.strictObject({ timeoutMs: z.int().min(0).max(WAIT_MS_MAX).default(WAIT_MS_MAX) });
const WaitOrPerson = WaitQuery.extend({ orPerson: z.boolean().optional() });
const Reason = z.strictObject({ text: z.string().max(2000).optional() });

/**
 * The verbs that all kinds of durable jobs share. A job is named by its id or an id prefix; the verbs throw `not_found`
 * for one that does not exist, `invalid` for an ambiguous prefix (`details.candidates`).
 */
export function jobVerbs<
  const Group extends string,
  const Thing extends OwnedThing,
  View extends z.ZodType,
  Event extends z.ZodType,
  const Params extends { params?: Record<string, z.ZodType> } = object,
>({ group, thing, view, event, about }: { group: Group; thing: Thing; view: View; event: Event; about?: Params }) {
  const at = `/v1/${group}/{${thing}}` as const;
  const params = about as Params;
  return {
    get: verb({ ...params, path: `GET ${at}`, gives: view, scope: "read", owned: thing, summary: `Get one ${thing}.` }),
    /** Reads the events from a sequence number on. With `follow`, also yields new ones until the job ends. */
    events: verb({
      ...params,
      path: `GET ${at}/events`,
      gives: event,
      kind: "log",
      scope: "read",
      owned: thing,
      summary: `List the events of a ${thing}: a page as JSON, or server-sent events until it ends, with sequence numbers as ids.`,
    }),
    /**
     * Resolves when the job has ended or, with `orPerson`, as soon as it waits for a person. Does not drive the job.
     * Throws `cancelled` if the signal aborts.
     */
    wait: verb({
      ...params,
      path: `GET ${at}/wait`,
      takes: WaitOrPerson,
      gives: view,
      kind: "wait",
      scope: "read",
      owned: thing,
      summary: `Wait until a ${thing} ends or, with \`orPerson\`, waits for a person. After \`timeoutMs\`, answers with its current state.`,
    }),
    /**
     * Asks the job to end, and drives it until it has ended. Then `wait` resolves. Throws `conflict` if it has already
     * ended.
     */
    cancel: verb({
      ...params,
      path: `POST ${at}/cancel`,
      takes: Reason,
      bodyOptional: true,
      by: true,
      gives: view,
      scope: "run",
      owned: thing,
      summary: `Cancel a ${thing} and the work in progress for it.`,
    }),
    /** Starts nothing new; work in progress finishes. Throws `conflict` if the job has ended. */
    pause: verb({
      ...params,
      path: `POST ${at}/pause`,
      takes: Reason,
      bodyOptional: true,
      by: true,
      gives: view,
      scope: "run",
      owned: thing,
      summary: `Pause a ${thing}: start nothing new until it is resumed.`,
    }),
    /** Continues a job that was paused or has no driver. Throws `conflict` if it has ended. */
    resume: verb({
      ...params,
      path: `POST ${at}/resume`,
      by: true,
      gives: view,
      scope: "run",
      owned: thing,
      summary: `Resume a ${thing} that was paused or has no driver.`,
    }),
    /** Removes a job that has ended, with its parts of the same kind. Throws `conflict` if it has not ended. */
    remove: verb({
      ...params,
      path: `DELETE ${at}`,
      scope: "run",
      owned: thing,
      summary: `Remove a ${thing} that has ended.`,
    }),
  };
}

/** The durable-job verbs as their implementation sees them, for any kind. */
export interface JobVerbs<Event = { type: string; at: string; data: unknown }, View extends JobView = JobView> {
  get(word: string): Promise<View>;
  /** Lists jobs, last changed first, without folding their logs. Throws `invalid` for a malformed cursor. */
  list(options?: ListJobs): Promise<JobList>;
  events(word: string, options?: { fromSeq?: number; follow?: boolean; signal?: AbortSignal }): AsyncIterable<Event & { seq: number }>;
  wait(word: string, options?: { orPerson?: boolean | undefined; signal?: AbortSignal }): Promise<View>;
  cancel(word: string, options: { by: string; text?: string | undefined }): Promise<View>;
  pause(word: string, options: { by: string; text?: string | undefined }): Promise<View>;
  resume(word: string, options: { by: string }): Promise<View>;
  remove(word: string): Promise<void>;
}
