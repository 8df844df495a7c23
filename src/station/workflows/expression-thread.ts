import { extname, join } from "node:path";
import { Worker } from "node:worker_threads";
import { CaissonError } from "../../contract/error.ts";
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

/** An evaluation has a budget of steps and bytes; this ends one that gets around it. Long, as machines may be busy. */
const TIME_MAX_MS = 10_000;
const MEMORY_MAX_MB = 256;
/** A thread without work ends. */
const IDLE_MS = 60_000;

export interface ExpressionThread extends AsyncDisposable {
  evaluate: Evaluator;
  /** What is wrong with a workflow's definition. Throws `timeout`, `too_large`, and `invalid` for what is not JSON. */
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
  /** With what the thread says to this request. */
  answered: (answer: unknown) => void;
  failed: (why: Failure) => void;
}

/**
 * Evaluates expressions and checks definitions in a worker thread, so that the station answers meanwhile whatever they
 * do, and one that does not end is ended. Owners take turns.
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
  /** Takes the thread away from what it does. The next job gets another one. */
  const end = (why: Failure | null) => {
    const ended = thread;
    thread = null;
    ended?.removeAllListeners();
    // It may have thrown on its way out, which is not news.
    ended?.on("error", () => undefined);
    const stopped = ended?.terminate();
    if (current !== null) settle((job) => job.failed(why ?? THREAD_ENDED));
    return stopped;
  };
  const open = (): Worker => {
    const program = join(import.meta.dirname, `expression-thread-main${extname(import.meta.filename)}`);
    // It needs nothing of the environment, and what it evaluates comes from others.
    const made = new Worker(program, { env: {}, resourceLimits: { maxOldGenerationSizeMb: MEMORY_MAX_MB } });
    made.on("message", (answer: unknown) => settle((job) => job.answered(answer)));
    made.on("error", (error: NodeJS.ErrnoException) => {
      const isFull = error.code === "ERR_WORKER_OUT_OF_MEMORY";
      void end(isFull ? { code: "too_large", why: `it needs more than ${MEMORY_MAX_MB} MiB` } : { code: "internal", why: error.message });
    });
    made.on("exit", () => void end(null));
    return made;
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
    // The last in turn again.
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
          answered: (answer) => done(knownFrom(wanted, answer as EvaluationAnswer)),
          failed: (why) => done({ error: failure(wanted.expression, { ...why, hint: HINT }) }),
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
          answered: (answer) => done(answer as DefinitionProblem[]),
          failed: ({ code, why }) => refuse(new CaissonError(code, `the workflow cannot be checked: ${why}`)),
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

const HINT = "Do less in one expression, or compute it in a step with a command.";
const THREAD_ENDED = { code: "internal", why: "its thread ended" } as const;
