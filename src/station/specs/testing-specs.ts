import { afterEach } from "vitest";
import type { SpecData } from "../../contract/spec/spec.ts";
import type { CreateSpecInput, SpecView } from "../../contract/spec/spec-verbs.ts";
import { noCrash } from "../../lib/crashpoint.ts";
import { createMemoryLog } from "../../log/memory/log.ts";
import { createJobs } from "../durable/durable-verbs.ts";
import { type crashAt, createTestDriver, ownerOf } from "../durable/testing-durable.ts";
import { createLocalSpecs } from "./local-specs.ts";
import type { SpecMerges } from "./spec-effects.ts";
import { specKind } from "./spec-kind.ts";

/** Spec data that passes every check, for tests. */
export const goodData = {
  explore: {
    summary: "A small program that reads a text and says how many letters it has; it has one source file and one test.",
    keyFiles: [
      { path: "src/main.ts", why: "reads the text" },
      { path: "src/letters.ts", why: "counts letters" },
      { path: "test/letters.test.ts", why: "shows how things are tested" },
    ],
    scope: { inside: ["counting words"], outside: ["other languages"] },
    questions: [],
  },
  prd: {
    problem: "Writers want to know how long a text is, and letters do not say.",
    goals: ["count words"],
    stories: [
      { id: "US-001", as: "a writer", want: "to know how many words a text has", so: "I know how long it is" },
      { id: "US-002", as: "a writer", want: "to be told when a text is empty", so: "" },
    ],
    metrics: [{ name: "texts counted right", target: "all" }],
    outOfScope: [],
  },
  requirements: {
    requirements: [
      {
        id: "REQ-001",
        statement: "When a text is given, the counter shall say how many words it has.",
        story: "US-001",
        criteria: ["two words give 2", "several spaces count as one"],
      },
      {
        id: "REQ-002",
        statement: "If the text is empty, then the counter shall say 0.",
        story: "US-002",
        criteria: ["an empty file gives 0", "spaces alone give 0"],
      },
    ],
  },
  design: {
    overview: "A function takes a text apart at white space and counts what is left; the program prints it.",
    components: [{ name: "words", does: "counts", requirements: ["REQ-001", "REQ-002"] }],
    api: "words(text): number",
    data: "Nothing is kept.",
    security: "Texts are bounded by memory alone.",
  },
  tasks: {
    tasks: [
      { id: "TASK-001", title: "Count words", description: "", hours: 2, dependsOn: [], requirements: ["REQ-001"] },
      { id: "TASK-002", title: "Empty texts", description: "", hours: 1, dependsOn: ["TASK-001"], requirements: ["REQ-002"] },
    ],
    criticalPath: ["TASK-001", "TASK-002"],
  },
  sync: {
    matrix: [
      { requirement: "REQ-001", components: ["words"], tasks: ["TASK-001"] },
      { requirement: "REQ-002", components: ["words"], tasks: ["TASK-002"] },
    ],
    gaps: [],
    ready: true,
  },
} satisfies Required<SpecData>;

/** The result of a simulated agent run. */
export interface StandInResult {
  finish?: "done" | "error";
  text: string;
  changed?: string[];
}

/**
 * Simulates runs, sessions and merges. Each run ends at once with the result of `answer`. Runs and merges persist, as
 * in a station, however often the requesting process dies.
 */
export function standIns(answer: (task: string) => StandInResult) {
  const startedRuns: {
    run: string;
    key: string;
    task: string;
    agent?: string;
    session: string;
    from: string | null;
    result: StandInResult;
  }[] = [];
  const stopped: string[] = [];
  const merged: { key: string; sessions: readonly string[] }[] = [];
  const name = (prefix: string, index: number) =>
    `${prefix}_${"abcdefghijklmnopqrstuvwxyz".charAt(index % 26).repeat(11)}${"abcdefghijklmnop".charAt(index / 26)}`;
  const find = (run: string) => startedRuns.find((each) => each.run === run) as (typeof startedRuns)[number];
  const view = (run: string) => ({ ...find(run), status: "ended", finish: find(run).result.finish ?? "done" });
  const runs = {
    async list({ label = [] }: { label?: string[] }) {
      return { runs: startedRuns.filter(({ key }) => label.includes(`spec-key=${key}`)).map(({ run }) => view(run)) };
    },
    async start({
      task,
      labels,
      from,
      agent,
    }: {
      task: string;
      labels: Record<string, string>;
      from?: { session: string };
      agent?: string;
    }) {
      const run = name("run", startedRuns.length);
      startedRuns.push({
        run,
        key: labels["spec-key"] ?? "",
        task,
        ...(agent !== undefined && { agent }),
        session: run,
        from: from?.session ?? null,
        result: answer(task),
      });
      return view(run);
    },
    get: async (run: string) => view(run),
    wait: async (run: string) => view(run),
    async stop(run: string) {
      stopped.push(run);
    },
    async *events(run: string) {
      yield { type: "run.ended", data: { text: find(run).result.text } };
    },
  };
  const sessions = {
    diff: async (session: string) => ({
      files: startedRuns
        .filter((each) => each.session === session)
        .flatMap(({ result }) => (result.changed ?? []).map((path) => ({ path }))),
    }),
  };
  const merges: SpecMerges = {
    async start({ key, sessions: from }) {
      const there = merged.findIndex((each) => each.key === key);
      return String(there >= 0 ? there : merged.push({ key, sessions: from }) - 1);
    },
    result: async (merge) => ({ session: `merged-${merge}`, text: "" }),
    cancel: async () => undefined,
    streamOf: (merge) => `merge/${merge}`,
  };
  return { made: startedRuns, merged, stopped, runs, sessions, merges };
}

/** An agent that answers every phase well. */
export function goodAnswer(task: string): StandInResult {
  const phase = /^Spec phase: ([a-z]+)/.exec(task)?.[1] as keyof typeof goodData | undefined;
  if (phase !== undefined) return { text: `\`\`\`json\n${JSON.stringify(goodData[phase])}\n\`\`\`` };
  const id = /^Spec task: ([A-Z0-9-]+)/.exec(task)?.[1] ?? "";
  return { text: `${id} is done.`, changed: [`src/${id.toLowerCase()}.ts`] };
}

/** In the past, so that everything due after it is due at once. */
export const SPECS_NOW = Date.parse("2026-01-01T00:00:00.000Z");

export const threeTasks = {
  tasks: [
    { id: "TASK-001", title: "One", description: "", hours: 2, dependsOn: [], requirements: ["REQ-001"] },
    { id: "TASK-002", title: "Two", description: "", hours: 1, dependsOn: [], requirements: ["REQ-002"] },
    { id: "TASK-003", title: "Three", description: "", hours: 1, dependsOn: ["TASK-001", "TASK-002"], requirements: ["REQ-002"] },
  ],
  criticalPath: ["TASK-001", "TASK-003"],
};
export const inWaves = (task: string): StandInResult =>
  task.startsWith("Spec phase: tasks") ? { text: JSON.stringify(threeTasks) } : goodAnswer(task);

/**
 * Creates specs on a log in memory, with simulated runs and merges. `another` creates another process on the same log.
 * Everything is closed after each test.
 */
export function useSpecs() {
  const open: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of open.splice(0).reverse()) await close();
  });
  const keep = <Thing extends AsyncDisposable>(thing: Thing): Thing => {
    open.push(async () => await thing[Symbol.asyncDispose]());
    return thing;
  };
  return (options: Parameters<typeof openSpecs>[0] = {}) => openSpecs(options, keep);
}

export type SpecsRig = ReturnType<typeof openSpecs>;

function openSpecs(
  { answer = inWaves, crashpoint = noCrash as ReturnType<typeof crashAt> | typeof noCrash } = {},
  keep: <Thing extends AsyncDisposable>(thing: Thing) => Thing,
) {
  const log = keep(createMemoryLog());
  const standIn = standIns(answer);
  const kind = specKind({ ...standIn, now: () => SPECS_NOW } as unknown as Parameters<typeof specKind>[0]);
  const process = (pid: number, options: { crashpoint?: typeof noCrash; gone?: ReadonlySet<string> } = {}) => {
    const driver = keep(createTestDriver({ log, kinds: [kind], pid, ...options }));
    const jobs = createJobs(kind, { log, driver, crashpoint: noCrash });
    const claimName = async () => ({ async [Symbol.asyncDispose]() {} });
    const specs = createLocalSpecs({ jobs, log, runs: standIn.runs as never, claimName });
    return { driver, jobs, specs };
  };
  return { ...standIn, ...process(1, { crashpoint }), another: () => process(2, { gone: new Set([ownerOf(1)]) }), log };
}

export const propose = (over: Partial<CreateSpecInput> = {}): CreateSpecInput => ({
  idea: "Count words.",
  source: { kind: "empty" },
  gates: [],
  parallel: 3,
  ...over,
});

type Specs = SpecsRig["specs"];

export async function executed(specs: Specs, spec: string, overrides: object = {}): Promise<SpecView> {
  await specs.execute(spec, { by: "ann", ...overrides });
  return await specs.wait(spec);
}

export async function whole(specs: Specs, over: Partial<CreateSpecInput> = {}): Promise<SpecView> {
  const { spec } = await specs.create(propose(over));
  return await executed(specs, spec);
}

export const keysOf = (entries: readonly { key: string }[]) => entries.map(({ key }) => key.split("/").slice(1).join("/"));

/** Resolves when the spec has ended or waits for a person, or its driver has died. */
export async function settled({ jobs, driver }: SpecsRig, spec: string): Promise<void> {
  const controller = new AbortController();
  const over = jobs.wait(spec, { orPerson: true, signal: controller.signal }).catch(() => undefined);
  const died = (async () => {
    while (driver.defects.length === 0 && !controller.signal.aborted) await new Promise((resolve) => setImmediate(resolve));
  })();
  await Promise.race([over, died]);
  controller.abort();
  await Promise.all([over, died]);
}
