import { defineConfig } from "vitest/config";

const notOurs = ["**/node_modules/**", "**/build/**"];

/**
 * A file name says its lane: `x.test.ts` needs nothing; `x.slow.test.ts` starts servers, guests or processes, and is
 * left to `npm test` by `npm run check`, which sets this variable; `x.e2e.test.ts` needs real runtimes, and
 * `x.wait.e2e.test.ts` mostly waits, so that `npm test` runs it beside the others.
 */
const isQuick = process.env.CAISSON_TEST_QUICK === "1";
/** `wait` or `work`: the lanes of end-to-end tests that `npm test` runs beside each other. Absent: every file is found. */
const lane = process.env.CAISSON_TEST_LANE;

export default defineConfig({
  test: {
    // The default leaves a processor to a watcher that we do not use.
    maxWorkers: 2,
    projects: [
      {
        test: {
          name: "unit",
          include: ["{src,test,bench,guest,console}/**/*.test.{ts,tsx}"],
          exclude: [...notOurs, "**/*.e2e.test.ts", ...(isQuick ? ["**/*.slow.test.ts"] : [])],
          // Bounds for what hangs, and no claims on speed: on a machine that is busy with something else everything takes twenty times as long.
          testTimeout: 120_000,
          hookTimeout: 120_000,
          expect: { poll: { timeout: 60_000 } },
          // What modules keep never changes (the system's certificates, a compiled filter) or is kept for a key that the caller gives (an object, a state folder),
          // so files can share what they import: half of the time went there.
          isolate: false,
        },
      },
      {
        // Real runtimes, one file at a time: they measure and they count what is left behind.
        test: {
          name: "e2e",
          include: ["{src,test,bench,guest}/**/*.e2e.test.ts"],
          exclude: [...notOurs, ...(lane === "work" ? ["**/*.wait.e2e.test.ts"] : [])],
          globalSetup: ["test/support/docker-global-setup.ts", "test/support/cli-bundle-global-setup.ts"],
          setupFiles: ["test/support/own-folder.ts"],
          // Files of the waiting lane take turns by themselves: `npm test` runs two of them at once.
          fileParallelism: lane === "wait",
          testTimeout: 120_000,
          hookTimeout: 120_000,
          expect: { poll: { timeout: 45_000 } },
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
