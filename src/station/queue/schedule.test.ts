import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { nextDueMs, nextToStart, placesIn, type QueueBounds, type ScheduleState, WAIT_PER_POINT_MS, type WaitingRun } from "./schedule.ts";

const bounds: QueueBounds = {
  runsMax: 3,
  runsPerOwnerMax: 2,
  sandboxesMax: 6,
  promisedBytesMax: 1e15,
  promisedBytesPerOwnerMax: 1e15,
  sandboxesPerOwnerMax: 6,
  memoryBytesMax: 100,
  queuedMax: 1000,
  queuedPerOwnerMax: 1000,
};

function waiting(run: string, more: Partial<WaitingRun> = {}): WaitingRun {
  const usual = { owner: "ada", session: run, priority: 0, sinceMs: 0, startAtMs: null, isHeld: false, isPart: false };
  return { run, ...usual, needs: { sandboxes: 1, memoryBytes: 10 }, ...more };
}

function state(more: Partial<ScheduleState>): ScheduleState {
  const usual = {
    waiting: [],
    working: [],
    taken: { sandboxes: 0, memoryBytes: 0 },
    bounds,
    turns: new Map(),
    nowMs: 0,
    isDraining: false,
  };
  return { ...usual, ...more };
}

/** Runs with owners, sessions and priorities that often coincide. */
const someRuns = fc
  .array(
    fc.record({
      owner: fc.constantFrom("ada", "bob", "cyd"),
      session: fc.constantFrom("s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8"),
      priority: fc.integer({ min: -100, max: 100 }),
      sinceMs: fc.integer({ min: 0, max: 300_000 }),
      startAtMs: fc.option(fc.integer({ min: 0, max: 600_000 }), { freq: 2 }),
      memoryBytes: fc.constantFrom(0, 1, 5, 95),
      lastsMs: fc.integer({ min: 1, max: 300_000 }),
    }),
    { maxLength: 40 },
  )
  .map((runs) =>
    runs.map(({ memoryBytes, lastsMs, ...each }, at) => ({
      ...waiting(`run${String(at).padStart(2, "0")}`, { ...each, needs: { sandboxes: 1, memoryBytes } }),
      lastsMs,
    })),
  );

type Simulated = WaitingRun & { lastsMs: number };

/** Advances the clock until no run is left. `onStart` receives the state that the run was chosen from. */
function simulate(runs: readonly Simulated[], onStart: (chosen: Simulated, before: ScheduleState) => void): Simulated[] {
  const left = new Map(runs.map((each) => [each.run, each]));
  const working = new Map<string, { each: Simulated; endsMs: number }>();
  const turns = new Map<string, number>();
  const started: Simulated[] = [];
  let nowMs = 0;
  const now = (): ScheduleState => {
    const atWork = [...working.values()].map(({ each }) => each);
    const takenRoom = { sandboxes: atWork.length, memoryBytes: atWork.reduce((sum, { needs }) => sum + needs.memoryBytes, 0) };
    const come = [...left.values()].filter(({ sinceMs }) => sinceMs <= nowMs);
    return state({ waiting: come, working: atWork, taken: takenRoom, turns, nowMs });
  };
  while (left.size > 0 || working.size > 0) {
    for (let next = nextToStart(now()); next !== null; next = nextToStart(now())) {
      const chosen = left.get(next.run) as Simulated;
      onStart(chosen, now());
      left.delete(chosen.run);
      working.set(chosen.run, { each: chosen, endsMs: nowMs + chosen.lastsMs });
      turns.set(chosen.owner, turns.size === 0 ? 1 : Math.max(...turns.values()) + 1);
      started.push(chosen);
    }
    const times = [
      ...[...working.values()].map(({ endsMs }) => endsMs),
      ...[...left.values()].flatMap(({ sinceMs, startAtMs }) => [sinceMs, startAtMs ?? 0]),
    ];
    const nextMs = Math.min(...times.filter((each) => each > nowMs));
    expect(nextMs, "something will happen: nothing starves").toBeLessThan(Infinity);
    nowMs = nextMs;
    for (const [run, { endsMs }] of working) if (endsMs <= nowMs) working.delete(run);
  }
  return started;
}

describe("the schedule, for any waiting runs", () => {
  test("starts every run exactly once", () => {
    fc.assert(
      fc.property(someRuns, (runs) => {
        const started = simulate(runs, () => {});
        expect(started.map(({ run }) => run).sort()).toEqual(runs.map(({ run }) => run).sort());
      }),
    );
  });

  test("respects all bounds, sessions and start times", () => {
    fc.assert(
      fc.property(someRuns, (runs) => {
        simulate(runs, (chosen, { working, taken: takenRoom, nowMs }) => {
          expect(working.length).toBeLessThan(bounds.runsMax);
          expect(working.filter(({ owner }) => owner === chosen.owner).length).toBeLessThan(bounds.runsPerOwnerMax);
          expect(takenRoom.sandboxes + 1).toBeLessThanOrEqual(bounds.sandboxesMax);
          expect(takenRoom.memoryBytes + chosen.needs.memoryBytes).toBeLessThanOrEqual(bounds.memoryBytesMax);
          expect(working.map(({ session }) => session)).not.toContain(chosen.session);
          expect(nowMs).toBeGreaterThanOrEqual(Math.max(chosen.sinceMs, chosen.startAtMs ?? 0));
        });
      }),
    );
  });

  test("lets owners take turns: no owner passes another's ready run twice", () => {
    fc.assert(
      fc.property(someRuns, (runs) => {
        const passed = new Map<string, Set<string>>();
        simulate(runs, (chosen, before) => {
          const others = new Set(before.waiting.map(({ owner }) => owner));
          for (const owner of others) {
            if (owner === chosen.owner) continue;
            const alone = nextToStart({ ...before, waiting: before.waiting.filter((each) => each.owner === owner) });
            const by = passed.get(owner) ?? new Set();
            if (alone === null) continue;
            expect(by.has(chosen.owner), `${owner} was passed by ${chosen.owner} twice`).toBe(false);
            passed.set(owner, by.add(chosen.owner));
          }
          passed.delete(chosen.owner);
        });
      }),
    );
  });

  test("orders an owner's runs by priority and age, with a bounded wait", () => {
    fc.assert(
      fc.property(someRuns, (runs) => {
        simulate(runs, (chosen, before) => {
          const own = before.waiting.filter(({ owner, session }) => owner === chosen.owner && session === chosen.session);
          for (const other of own) {
            const readyMs = Math.max(other.sinceMs, other.startAtMs ?? 0);
            if (readyMs > before.nowMs) continue;
            const chosenMs = Math.max(chosen.sinceMs, chosen.startAtMs ?? 0);
            // A run can pass it only if it arrived within this time.
            expect(chosenMs - readyMs).toBeLessThanOrEqual((chosen.priority - other.priority) * WAIT_PER_POINT_MS);
          }
        });
      }),
    );
  });

  test("gives every run a place, and starts the first one", () => {
    fc.assert(
      fc.property(someRuns, (runs) => {
        simulate(runs, (chosen, before) => {
          const places = placesIn(before);
          expect([...places.keys()].sort()).toEqual(before.waiting.map(({ run }) => run).sort());
          const positions = [...places.values()].flatMap(({ position }) => position ?? []);
          expect(positions.toSorted((a, b) => a - b)).toEqual(positions.map((_, at) => at + 1));
          expect(places.get(chosen.run)?.waitsFor).toBe("nothing");
        });
      }),
    );
  });
});

describe("the schedule", () => {
  test("keeps the turn of a run too large for now, but skips one that never fits", () => {
    const large = waiting("large", { needs: { sandboxes: 1, memoryBytes: 95 } });
    const small = waiting("small", { owner: "bob", sinceMs: 1 });
    const takenRoom = { sandboxes: 1, memoryBytes: 10 };
    expect(nextToStart(state({ waiting: [small, large], taken: takenRoom }))).toBe(null);
    expect(placesIn(state({ waiting: [small, large], taken: takenRoom })).get("large")).toMatchObject({ position: 1, waitsFor: "memory" });
    expect(placesIn(state({ waiting: [small, large], taken: takenRoom })).get("small")).toMatchObject({ position: 2, waitsFor: "turn" });
    const never = { ...large, needs: { sandboxes: 1, memoryBytes: 101 } };
    expect(nextToStart(state({ waiting: [small, never], taken: takenRoom }))?.run).toBe("small");
  });

  test("starts a run that already has its sandbox, even if no room is left", () => {
    const again = waiting("again", { needs: { sandboxes: 0, memoryBytes: 0 } });
    expect(nextToStart(state({ waiting: [again], taken: { sandboxes: 9, memoryBytes: 900 } }))?.run).toBe("again");
  });

  test("runs one part of a larger job even without room, but no second one", () => {
    const takenRoom = { sandboxes: 6, memoryBytes: 60 };
    const plain = waiting("plain", { sinceMs: 0 });
    const part = waiting("part", { sinceMs: 1, isPart: true });
    const other = waiting("other", { sinceMs: 2, isPart: true });
    const full = state({ waiting: [plain, part, other], taken: takenRoom });
    expect(nextToStart(full)?.run).toBe("part");
    expect(placesIn(full).get("part")?.waitsFor).toBe("nothing");
    expect(placesIn(full).get("plain")?.waitsFor).toBe("sandboxes");
    const working = [{ run: "part", owner: "ada", session: "part", isPart: true }];
    expect(nextToStart(state({ waiting: [plain, other], working, taken: takenRoom }))).toBe(null);
    expect(nextToStart({ ...full, isDraining: true })).toBe(null);
    const tooLarge = { ...part, needs: { sandboxes: 1, memoryBytes: 101 } };
    expect(nextToStart(state({ waiting: [tooLarge], taken: takenRoom }))).toBe(null);
  });

  test("reports what each run waits for", () => {
    const working = [
      { run: "w1", owner: "ada", session: "s1", isPart: false },
      { run: "w2", owner: "ada", session: "s2", isPart: false },
    ];
    const runs = [
      waiting("later", { startAtMs: 5_000 }),
      waiting("held", { isHeld: true }),
      waiting("full"),
      waiting("shared", { owner: "bob", session: "s1" }),
      waiting("next", { owner: "bob", sinceMs: 1 }),
    ];
    const reasons = Object.fromEntries([...placesIn(state({ waiting: runs, working }))].map(([run, { waitsFor }]) => [run, waitsFor]));
    expect(reasons).toEqual({ later: "time", held: "resume", full: "owner", shared: "session", next: "nothing" });
    expect(nextDueMs(state({ waiting: runs }))).toBe(5_000);
    expect(placesIn(state({ waiting: runs, isDraining: true })).get("next")?.waitsFor).toBe("drain");
  });

  test("follows the clock when it is set forward or back", () => {
    const later = waiting("later", { startAtMs: 5_000 });
    expect(nextToStart(state({ waiting: [later], nowMs: 4_999 }))).toBe(null);
    expect(nextToStart(state({ waiting: [later], nowMs: 9_000_000 }))?.run).toBe("later");
    expect(nextToStart(state({ waiting: [later], nowMs: -9_000_000 }))).toBe(null);
  });
});
