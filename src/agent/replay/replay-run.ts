import { setImmediate as tick } from "node:timers/promises";
import { CaissonError } from "../../contract/error/error.ts";
import type { RunEvent } from "../../contract/run/run-event.ts";
import type { ReplayDifference } from "../../contract/run/run-replay.ts";
import { ignore, ignoring } from "../../lib/failures.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { driveRun } from "../loop.ts";
import { checkRecording } from "./check-recording.ts";
import { type RecordedEvent, toReplayItems } from "./replay-items.ts";
import { createReplayClock, createReplayModel } from "./replay-model.ts";
import { createReplayTools, noNetwork, noSandbox, type RunTool, recordedHooks } from "./replay-tools.ts";
import { ReplayTrack } from "./replay-track.ts";

/** The loop waits for nothing but the recording, so after this many turns of the event loop it waits in vain. */
const STALLED_TICKS = 200;

export interface ReplayOptions {
  run: string;
  events: readonly RecordedEvent[];
  /** The context size of a model, which decides when the conversation is compacted. */
  contextTokens: (model: string) => Promise<number>;
  /** Runs each call again, in a sandbox, for comparison. The loop gets the recorded result. Null: no call runs. */
  live: { runTool: RunTool; sandbox: () => Promise<Sandbox> } | null;
  /** Called before the first event of each step. Returns false to end the replay there. */
  onStep: (step: number) => boolean;
  onForeign: (event: RunEvent) => void;
  signal: AbortSignal;
}

export interface ReplayOutcome {
  steps: number;
  /** Events of the loop that came out as recorded. */
  events: number;
  difference: ReplayDifference | null;
  notCompared: readonly string[];
}

/**
 * Runs the loop again from a recording, with the recorded answers of the model, results of the tools and events of
 * others, and compares every event that it appends. It uses neither model, sandbox nor network, unless `live` gives it
 * a sandbox. Throws `gone` for an incomplete recording, `cancelled`.
 */
export async function replayRun(options: ReplayOptions): Promise<ReplayOutcome> {
  const { run, events } = options;
  checkRecording(run, events);
  const track = new ReplayTrack(toReplayItems(events), options);
  for (let before = track.position; track.begin(); before = track.position) {
    options.signal.throwIfAborted();
    await driveOnce(track, options);
    if (track.difference === null && track.position === before) ignoring("the track notes it", () => track.differ("the loop ended"));
  }
  return { steps: track.state.step, events: track.repeatedCount, difference: track.difference, notCompared: [...track.notCompared] };
}

/** Lets the loop repeat the work of one recorded driver. */
async function driveOnce(track: ReplayTrack, options: ReplayOptions): Promise<void> {
  const { live, events } = options;
  const journal = track.open();
  const signal = AbortSignal.any([journal.signal, options.signal]);
  const work = createWork();
  const runTool: RunTool | null = live && ((...call) => work.during(live.runTool(...call)));
  const sandbox = live === null ? async () => noSandbox() : () => work.during(live.sandbox());
  const { state } = track;
  const driving = driveRun({
    journal,
    model: createReplayModel(track, { name: state.model, contextTokens: await options.contextTokens(state.model) }),
    tools: createReplayTools(track, { events: events.map(({ event }) => event), runTool }),
    sandbox,
    onLost: (error) => Promise.reject(error),
    hooks: { before: recordedHooks(track), after: [] },
    history: { events: () => Promise.reject(new Error("a replay has no history")) as never },
    network: noNetwork,
    storeStep: async () => null,
    clock: createReplayClock(track),
    signal,
    crashpoint: () => {},
  });
  const over = new AbortController();
  const stalled = untilStalled(track, work, over.signal).then(() => track.differ("the loop waits"));
  try {
    await Promise.race([driving, stalled]);
  } catch (error) {
    if (options.signal.aborted) throw new CaissonError("cancelled", `the replay of ${options.run} was cancelled`);
    // The journal ended the loop, or the run waits for its provider, as it did.
    const isExpected = track.difference !== null || journal.signal.aborted || isReleased(error);
    if (!isExpected) throw error;
  } finally {
    over.abort();
    void ignore(driving, "the loop of an earlier driver");
    void ignore(stalled, "the loop continued");
  }
}

/** Returns whether the loop left the run to the next driver: it waits for its provider, or is about to be rewound. */
const isReleased = (error: unknown) => error instanceof CaissonError && (error.details?.paused === true || error.code === "superseded");

/** Work that the loop waits for outside the recording. */
interface Work {
  during<Result>(promise: Promise<Result>): Promise<Result>;
  /** Resolves when none is under way. */
  idle(): Promise<void>;
}

function createWork(): Work {
  let count = 0;
  let over = Promise.withResolvers<void>();
  return {
    async during(promise) {
      if (count === 0) over = Promise.withResolvers();
      count += 1;
      try {
        return await promise;
      } finally {
        count -= 1;
        if (count === 0) over.resolve();
      }
    },
    idle: async () => (count === 0 ? undefined : await over.promise),
  };
}

/** Resolves when the loop has repeated nothing for a while, though it waits for no work. */
async function untilStalled(track: ReplayTrack, work: Work, signal: AbortSignal): Promise<void> {
  let seen = -1;
  for (let ticks = 0; ticks < STALLED_TICKS; ticks++) {
    await work.idle();
    await tick(undefined, { signal });
    if (track.repeatedCount !== seen) ticks = 0;
    seen = track.repeatedCount;
  }
}
