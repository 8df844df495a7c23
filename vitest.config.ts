import { defineConfig } from "vitest/config";

const notOurs = ["**/node_modules/**", "**/build/**"];

/**
 * Unit tests that start servers, guests or processes, or crash at every write: most of the time of all of them. `npm test` runs them;
 * `npm run check`, which sets this variable, leaves them to it.
 */
const leftToNpmTest = [
  "guest/test/**",
  "src/api/{callers,conditions,connections,disk-room,fuzz,inside,owner-shares,owned-sandboxes,owned-things,owners,queue,reach,sandbox-events,server,specs}.test.ts",
  "src/api/foreign-text.test.ts",
  "src/station/poison/poison.test.ts",
  "src/station/workflows/expression-thread.test.ts",
  "test/foreign-text.test.ts",
  "src/api/{mcp,observe,streams}/**",
  "src/api/overload/overload.test.ts",
  "src/client/station/**",
  "src/cli/options/bad-values.test.ts",
  "src/cli/station/station-commands.test.ts",
  "src/compose/{fetching,fetching-images,target}.test.ts",
  "src/log/sqlite/log.test.ts",
  "src/remote/callers-folders.test.ts",
  "src/runtimes/fake/runtime.test.ts",
  "src/runtimes/oci/launch/launcher-process.test.ts",
  "src/station/**/*-crashes.test.ts",
  "src/station/guardian/{guardian,guardian-looks}.test.ts",
  "src/station/health/station-watch.test.ts",
  "src/station/runs/{long-runs,run-faults,run-limits,run-permissions,run-sandbox,runs}.test.ts",
  "src/station/sandboxes/sandbox-chronicle.test.ts",
  "src/station/sessions/session-verbs.test.ts",
  "src/station/specs/{local-specs,spec-waves}.test.ts",
  "src/station/telemetry/**",
  "src/station/workflows/{schedule,workflows}.test.ts",
  "src/workspace/{apply,apply-links,apply-recovery,apply-repositories,git/branch,git/host-git}.test.ts",
  "test/{kept-script,launcher}.test.ts",
  "src/api/{address-secrets,damaged-files}.test.ts",
  "src/client/dead-lines.test.ts",
];
const isQuick = process.env.CAISSON_TEST_QUICK === "1";

export default defineConfig({
  test: {
    // The default leaves a processor to a watcher that nobody uses here.
    maxWorkers: 2,
    projects: [
      {
        test: {
          name: "unit",
          include: ["{src,test,bench,guest,console}/**/*.test.{ts,tsx}"],
          exclude: [...notOurs, "**/*.e2e.test.ts", ...(isQuick ? leftToNpmTest : [])],
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
          exclude: notOurs,
          globalSetup: ["test/support/docker-global-setup.ts", "test/support/cli-bundle-global-setup.ts"],
          setupFiles: ["test/support/not-through-a-station.ts"],
          fileParallelism: false,
          testTimeout: 120_000,
          hookTimeout: 120_000,
          expect: { poll: { timeout: 45_000 } },
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
