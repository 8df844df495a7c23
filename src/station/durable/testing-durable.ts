import { z } from "zod";
import { jobFamily } from "../../contract/durable/durable-event.ts";
import { concerns, defineEvent } from "../../contract/event/define-event.ts";
import type { NewEventOf } from "../../contract/event/event-family.ts";
import { type Crashpoint, noCrash } from "../../lib/crashpoint.ts";
import type { Log } from "../../log/log.ts";
import { jobProjection, projectionOf } from "../../log/projection.ts";
import { createDriver, type Driver, type DriverOptions } from "./driver.ts";
import type { Effect, Kind, ReadKindEvent } from "./kind.ts";

/** Simulates a process that drives jobs on a log that others may share. */
export function createTestDriver(
  options: Pick<DriverOptions, "log" | "kinds"> & Partial<DriverOptions> & { pid: number; gone?: ReadonlySet<string> },
): Driver & { defects: unknown[] } {
  const defects: unknown[] = [];
  const driver = createDriver({
    crashpoint: noCrash,
    runs: { isOver: async () => true, tend: async () => undefined },
    onDefect: (error) => void defects.push(error),
    ...options,
    holder: ownerOf(options.pid),
    holderGone: (owner) => options.gone?.has(owner) ?? false,
  });
  return Object.assign(driver, { defects });
}

export const ownerOf = (pid: number): string => `process ${pid}`;

/** Thrown by a test's crash point. A driver treats it as a defect: it appends nothing more, and releases the job. */
export class Crash extends Error {}

/** Crashes at the Nth point; `points` counts them. */
export function crashAt(nth: number): Crashpoint & { points: number } {
  const crashpoint = Object.assign(
    () => {
      crashpoint.points += 1;
      if (crashpoint.points === nth) throw new Crash(`at point ${nth}`);
    },
    { points: 0 },
  );
  return crashpoint;
}

const ToyBegun = defineEvent("toy.begun", 1, concerns(), { steps: z.int(), pauseMs: z.int(), approval: z.boolean() });
const ToyStepStarted = defineEvent("toy.step_started", 1, concerns(), { step: z.int(), attempt: z.int() });
const ToyStepEnded = defineEvent("toy.step_ended", 1, concerns(), { step: z.int(), ok: z.boolean(), value: z.string() });
const ToyPauseStarted = defineEvent("toy.pause_started", 1, concerns(), { due: z.iso.datetime() });
const ToyPauseEnded = defineEvent("toy.pause_ended", 1, concerns(), {});
const ToyApproved = defineEvent("toy.approved", 1, concerns(), { by: z.string() });

const definitions = [ToyBegun, ToyStepStarted, ToyStepEnded, ToyPauseStarted, ToyPauseEnded, ToyApproved] as const;
export const toyEvents = jobFamily(definitions);
type ToyEvent = z.infer<(typeof definitions)[number]>;
export type NewToyEvent = NewEventOf<ToyEvent>;

export const toyProjectionOf: typeof projectionOf = (stream) =>
  stream.startsWith("toy/") ? jobProjection({ prefix: "toy/", events: toyEvents }) : projectionOf(stream);

export interface ToyState {
  plan: { steps: number; pauseMs: number; approval: boolean };
  done: string[];
  current: { step: number; attempt: number } | null;
  failures: number;
  due: Date | null;
  isPaused: boolean;
  approved: boolean;
}

export interface ToyEffect extends Effect {
  step: number;
}

/**
 * Performs its steps one after the other, then waits for a time, then for a person. Makes two attempts at each step.
 */
export function toyKind(perform: Kind<ToyState, NewToyEvent, ToyEffect>["perform"]): Kind<ToyState, NewToyEvent, ToyEffect> {
  return {
    name: "toy",
    prefix: "toy/",
    idPrefix: "toy",
    listedBy: "caisson toy ls",
    events: toyEvents,
    empty: () => ({
      plan: { steps: 0, pauseMs: 0, approval: false },
      done: [],
      current: null,
      failures: 0,
      due: null,
      isPaused: false,
      approved: false,
    }),
    apply: applyToy,
    decide(state, { facts, now }) {
      const { plan, done, current, due } = state;
      if (current !== null) {
        const { step, attempt } = current;
        return { effects: [{ id: `${facts.id}/${step}/${attempt}`, step, cancel: facts.cancelRequested !== null }] };
      }
      if (facts.cancelRequested !== null) return { end: { finish: "cancelled", text: null } };
      if (state.failures >= 2) return { end: { finish: "failed", text: `step ${done.length} failed` } };
      if (done.length < plan.steps) {
        return { append: [{ type: "toy.step_started", data: { step: done.length, attempt: state.failures + 1 } }] };
      }
      if (plan.pauseMs > 0 && due === null) {
        return { append: [{ type: "toy.pause_started", data: { due: new Date(now.getTime() + plan.pauseMs).toISOString() } }] };
      }
      if (due !== null && !state.isPaused)
        return due <= now ? { append: [{ type: "toy.pause_ended", data: {} }] } : { effects: [], waits: { due } };
      if (plan.approval && !state.approved) return { effects: [], waits: { person: "May it end?" } };
      return { end: { finish: "completed", text: done.join(",") } };
    },
    perform,
    describeFailure: ({ step }, error) => [{ type: "toy.step_ended", data: { step, ok: false, value: error.code } }],
  };
}

function applyToy(state: ToyState, read: ReadKindEvent): void {
  const event = read as ToyEvent;
  switch (event.type) {
    case "toy.begun":
      state.plan = event.data;
      return;
    case "toy.step_started":
      state.current = event.data;
      return;
    case "toy.step_ended":
      state.current = null;
      if (event.data.ok) state.done.push(event.data.value);
      state.failures = event.data.ok ? 0 : state.failures + 1;
      return;
    case "toy.pause_started":
      state.due = new Date(event.data.due);
      return;
    case "toy.pause_ended":
      state.isPaused = true;
      return;
    case "toy.approved":
      state.approved = true;
      return;
    default:
  }
}

/** Returns the types of a stream's events, in order. */
export async function typesOf(log: Log, stream: string): Promise<string[]> {
  return (await log.read(stream)).map(({ type }) => type);
}
