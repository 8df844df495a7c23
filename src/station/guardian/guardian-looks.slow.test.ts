import { expect, test } from "vitest";
import { createMemoryLog } from "../../log/memory/log.ts";
import {
  append,
  eventsOf,
  guarding,
  next,
  repeated,
  runBegan,
  same,
  settingsOf,
  shell,
  stepEvents,
  steps,
  until,
} from "./testing-guardian.ts";

test("a run that changes files with shell commands is not idle", async () => {
  const log = createMemoryLog();
  const looks: string[] = [];
  let version = 0;
  guarding(log, settingsOf(), {
    look: async (session) => {
      looks.push(session);
      version += 1;
      return `files ${version}`;
    },
  });
  await append(log, runBegan());
  for (let portion = 1; portion <= 3; portion++) {
    await append(log, [...steps(portion * 20, repeated(20, shell)), ...next(portion * 20)]);
    await until(async () => looks.length >= portion);
  }
  await append(log, [...steps(61, repeated(10, shell)), ...next(71)]);
  // A second, looping run: the guardian reads events in order, so its nudge comes after everything of the first run.
  const other = "run_zzzzzzzzzzzz";
  await append(
    log,
    [
      ...runBegan({ run: other, owner: "else" }),
      ...steps(
        1,
        repeated(7, () => same),
      ),
      ...next(8),
    ],
    other,
  );
  await until(async () => (await eventsOf(log, "guardian.decided", other)).length === 1);
  expect(await eventsOf(log, "guardian.decided")).toEqual([]);
  expect(new Set(looks)).toEqual(new Set(["s"]));
});

test("a run whose commands change nothing is idle, unless its files cannot be read", async () => {
  for (const [look, decisions] of [
    [async () => "the same files", true],
    [async () => "", true],
    [async () => Promise.reject(new Error("no sandbox")), false],
  ] as const) {
    const log = createMemoryLog();
    let looks = 0;
    const counted = () => {
      looks += 1;
      return look();
    };
    guarding(log, settingsOf(), { look: counted });
    await append(log, runBegan());
    for (let step = 1; step <= 40; step++) await append(log, stepEvents(step, [{ ...shell(1) }]));
    await until(async () => looks > 0);
    await append(log, [
      ...steps(
        41,
        repeated(8, () => shell(1)),
      ),
      ...next(49),
    ]);
    const other = "run_zzzzzzzzzzzz";
    await append(
      log,
      [
        ...runBegan({ run: other, owner: "else" }),
        ...steps(
          1,
          repeated(7, () => same),
        ),
        ...next(8),
      ],
      other,
    );
    await until(async () => (await eventsOf(log, "guardian.decided", other)).length === 1);
    // A check takes one turn of the event loop, and another for each earlier run.
    if (decisions) await until(async () => (await eventsOf(log, "guardian.decided")).length > 0);
    expect((await eventsOf(log, "guardian.decided")).length > 0).toBe(decisions);
  }
});
