import { extname, join } from "node:path";
import { Worker } from "node:worker_threads";
import { CaissonError } from "../../contract/error/error.ts";
import {
  type EvaluationAnswer,
  type EvaluationRequest,
  type Evaluator,
  failure,
  failureOf,
  type KnownValue,
  knownFrom,
  requestFor,
} from "../../workflow/expressions/evaluate.ts";
import { type DefinitionProblem, isTooDeep, readDefinition } from "../../workflow/validate.ts";

/**
 * A safety net: evaluations have budgets of steps and bytes, and this limit ends one that escapes them. It is long
 * because machines may be busy.
 */
const TIME_MAX_MS = 10_000;
const MEMORY_MAX_MB = 256;
/** How long a thread without work stays. */
const IDLE_MS = 60_000;

export interface ExpressionThread extends AsyncDisposable {
  evaluate: Evaluator;
  /**
   * Returns the problems of a workflow definition. Throws `timeout`, `too_large`, and `invalid` for values that are not
   * JSON.
   */
  check: DefinitionCheck;
}
export type DefinitionCheck = (definition: unknown, options: { owner: string }) => Promise<DefinitionProblem[]>;

export type ThreadRequest = EvaluationRequest | { definition: string };

interface Failure {
  code: "timeout" | "too_large" | "internal";
  why: string;
}

interface Job {
  request: ThreadRequest;
  /** Called with the thread's answer to this request. */
  onAnswer: (answer: unknown) => void;
  onFailure: (why: Failure) => void;
}

/**
 * Evaluates expressions and checks definitions in a worker thread, so that the station stays responsive, and an
 * evaluation that does not finish can be ended. Owners take turns.
 */
export function createExpressionThread({ timeMaxMs = TIME_MAX_MS }: { timeMaxMs?: number } = {}): ExpressionThread {
  const waiting = new Map<string, Job[]>();
  let thread: Worker | null = null;
  let current: Job | null = null;
  let timer: NodeJS.Timeout | undefined;

  const settle = (how: (job: Job) => void) => {
    const job = current;
    current = null;
    clearTimeout(timer);
    if (job !== null) how(job);
    next();
  };
  /** Ends the thread in the middle of its work. The next job gets a new one. */
  const end = (why: Failure | null) => {
    const ended = thread;
    thread = null;
    ended?.removeAllListeners();
    // It may throw while it exits, which does not matter.
    ended?.on("error", () => undefined);
    const stopped = ended?.terminate();
    if (current !== null) settle((job) => job.onFailure(why ?? THREAD_ENDED));
    return stopped;
  };
  const open = (): Worker => {
    const program = join(import.meta.dirname, `expression-thread-main${extname(import.meta.filename)}`);
    // It needs no environment, and must not have one: it evaluates input from users.
    const worker = new Worker(program, { env: {}, resourceLimits: { maxOldGenerationSizeMb: MEMORY_MAX_MB } });
    worker.on("message", (answer: unknown) => settle((job) => job.onAnswer(answer)));
    worker.on("error", (error: NodeJS.ErrnoException) => {
      const isFull = error.code === "ERR_WORKER_OUT_OF_MEMORY";
      void end(isFull ? { code: "too_large", why: `it needs more than ${MEMORY_MAX_MB} MiB` } : { code: "internal", why: error.message });
    });
    worker.on("exit", () => void end(null));
    return worker;
  };
  const next = () => {
    const [owner, jobs] = waiting.entries().next().value ?? [];
    if (current !== null) return;
    if (owner === undefined || jobs === undefined) {
      timer = setTimeout(() => void end(null), IDLE_MS);
      timer.unref();
      thread?.unref();
      return;
    }
    waiting.delete(owner);
    const [job, ...others] = jobs;
    // This owner goes to the end of the queue.
    if (others.length > 0) waiting.set(owner, others);
    current = job as Job;
    thread ??= open();
    thread.ref();
    timer = setTimeout(() => void end({ code: "timeout", why: `it takes longer than ${timeMaxMs / 1000} s` }), timeMaxMs);
    thread.postMessage(current.request);
  };
  const add = (owner: string, job: Job) => {
    clearTimeout(current === null ? timer : undefined);
    waiting.set(owner, [...(waiting.get(owner) ?? []), job]);
    next();
  };
  return {
    async evaluate(wanted, { owner }) {
      let request: EvaluationRequest;
      try {
        request = requestFor(wanted);
      } catch (error) {
        return { error: failureOf(wanted.expression, error) };
      }
      return await new Promise<KnownValue>((done) => {
        add(owner, {
          request,
          onAnswer: (answer) => done(knownFrom(wanted, answer as EvaluationAnswer)),
          onFailure: (why) => done({ error: failure(wanted.expression, { ...why, hint: HINT }) }),
        });
      });
    },
    async check(definition, { owner }) {
      const problem = isTooDeep(definition) ? readDefinition(definition).problems : null;
      if (problem !== null) return problem;
      const text = JSON.stringify(definition) ?? "null";
      return await new Promise<DefinitionProblem[]>((done, refuse) => {
        add(owner, {
          request: { definition: text },
          onAnswer: (answer) => done(answer as DefinitionProblem[]),
          onFailure: ({ code, why }) => refuse(new CaissonError(code, `the workflow cannot be checked: ${why}`)),
        });
      });
    },
    async [Symbol.asyncDispose]() {
      waiting.clear();
      clearTimeout(timer);
      await end(null);
    },
  };
}

const HINT = "Do less in one expression, or compute the value in a command step.";
const THREAD_ENDED = { code: "internal", why: "its thread exited" } as const;
