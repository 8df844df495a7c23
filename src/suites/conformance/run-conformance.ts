import { chmod, chown, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Capabilities } from "../../contract/sandbox/sandbox.ts";
import { SandboxConfig, type SandboxConfigInput } from "../../contract/sandbox/sandbox.ts";
import { ignore } from "../../lib/failures.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import { type ConformanceContext, type ConformanceTest, whyNotApplicable } from "./context.ts";
import { within } from "./expectations.ts";
import { conformanceTests } from "./suite.ts";

export type ConformanceResult = { test: string; durationMs: number } & (
  | { outcome: "passed" }
  | { outcome: "skipped"; reason: string }
  | { outcome: "failed"; error: unknown }
);

export interface ConformanceOptions {
  /** The base of every config that the tests use. It gives a runtime without the `host` template its image. */
  spec?: SandboxConfigInput;
  patienceMs?: number;
}

/** Runs tests against one runtime, one at a time, sharing one sandbox where possible. */
export interface ConformanceRun extends AsyncDisposable {
  readonly capabilities: Capabilities;
  run(test: ConformanceTest): Promise<ConformanceResult>;
}

const PATIENCE_MS = 15_000;
/** The time limit of a whole test, in multiples of its patience. It ends anything that a test forgot to limit. */
const TEST_PATIENCES = 6;
const ORDINARY_UID = 1000;

export async function openConformanceRun(runtime: Runtime, options: ConformanceOptions = {}): Promise<ConformanceRun> {
  const capabilities = await runtime.capabilities();
  const patienceMs = options.patienceMs ?? PATIENCE_MS;
  const shared = sharedSandbox(runtime, configMaker(options));
  return {
    capabilities,
    async run(test) {
      const from = performance.now();
      const took = () => performance.now() - from;
      const notApplicable = whyNotApplicable(capabilities, test.needs);
      if (notApplicable !== null) return { test: test.name, outcome: "skipped", reason: notApplicable, durationMs: 0 };
      const { context, cleanUp } = createContext({ runtime, capabilities, options, patienceMs, shared });
      try {
        const skipped = await within({ patienceMs: patienceMs * TEST_PATIENCES }, "the whole test", test.run(context));
        if (skipped !== undefined) return { test: test.name, outcome: "skipped", reason: skipped.skipped, durationMs: took() };
        return { test: test.name, outcome: "passed", durationMs: took() };
      } catch (error) {
        return { test: test.name, outcome: "failed", error, durationMs: took() };
      } finally {
        await cleanUp();
      }
    },
    async [Symbol.asyncDispose]() {
      await shared.close();
    },
  };
}

export interface ConformanceReport {
  runtime: string;
  passed: number;
  failed: number;
  skipped: number;
  results: ConformanceResult[];
}

/** Runs the whole suite without a test framework, for `doctor` and for runtimes in other packages. */
export async function runConformance(
  runtime: Runtime,
  options: ConformanceOptions & { onResult?: (result: ConformanceResult) => void; only?: (name: string) => boolean } = {},
): Promise<ConformanceReport> {
  await using run = await openConformanceRun(runtime, options);
  const results: ConformanceResult[] = [];
  for (const test of conformanceTests) {
    if (options.only !== undefined && !options.only(test.name)) continue;
    const result = await run.run(test);
    results.push(result);
    options.onResult?.(result);
  }
  const count = (outcome: ConformanceResult["outcome"]) => results.filter((each) => each.outcome === outcome).length;
  return { runtime: runtime.name, passed: count("passed"), failed: count("failed"), skipped: count("skipped"), results };
}

function configMaker(options: ConformanceOptions) {
  return (config: SandboxConfigInput = {}): SandboxConfig => SandboxConfig.parse({ ...options.spec, ...config });
}

interface Shared {
  get(): Promise<OwnedSandbox>;
  close(): Promise<void>;
}

/** Creates the shared sandbox on first use, and again after a test made it unusable. */
function sharedSandbox(runtime: Runtime, configOf: (input?: SandboxConfigInput) => SandboxConfig): Shared {
  let current: OwnedSandbox | null = null;
  return {
    async get() {
      if (current !== null) {
        try {
          await within({ patienceMs: 2_000 }, "ping of the shared sandbox", current.ping());
        } catch {
          await ignore(current.destroy(), "it does not answer, and the next sweep removes it");
          current = null;
        }
      }
      current ??= await runtime.create(configOf());
      return current;
    },
    async close() {
      await current?.destroy();
      current = null;
    },
  };
}

interface ContextParts {
  runtime: Runtime;
  capabilities: Capabilities;
  options: ConformanceOptions;
  patienceMs: number;
  shared: Shared;
}

let folders = 0;

function createContext({ runtime, capabilities, options, patienceMs, shared }: ContextParts) {
  const configOf = configMaker(options);
  const sandboxes = new Set<OwnedSandbox>();
  const creations: Promise<OwnedSandbox>[] = [];
  const hostFolders: string[] = [];
  const context: ConformanceContext = {
    runtime,
    capabilities,
    patienceMs,
    configOf,
    sandbox: () => shared.get(),
    async folder() {
      folders += 1;
      const path = `/workspace/t${folders}`;
      await (await shared.get()).mkdir(path);
      return path;
    },
    adopt(sandbox) {
      sandboxes.add(sandbox);
      return sandbox;
    },
    async create(input) {
      const creating = runtime.create(configOf(input));
      creations.push(creating);
      return context.adopt(await within({ patienceMs: patienceMs * 2 }, "creating a sandbox", creating));
    },
    async hostFolder() {
      const path = await mkdtemp(join(tmpdir(), "caisson-test-"));
      // The sandbox's user may have any uid outside, so the folder is open to all; its test files are not secret. If
      // root runs the suite, the folder gets an ordinary owner, as workspaces have: some runtimes do not let commands
      // write to root's folders.
      await chmod(path, 0o777);
      if (process.getuid?.() === 0) await chown(path, ORDINARY_UID, ORDINARY_UID);
      hostFolders.push(path);
      return path;
    },
  };
  const cleanUp = async () => {
    // A sandbox that is created too late for its test is removed as well, but we do not wait indefinitely for it.
    const late = Promise.allSettled(creations.map(async (creating) => sandboxes.add(await creating)));
    await ignore(
      within({ patienceMs: patienceMs * TEST_PATIENCES }, "sandboxes that are still being created", late),
      "the next sweep removes them",
    );
    for (const sandbox of sandboxes) await ignore(sandbox.destroy(), "the next sweep removes it");
    for (const path of hostFolders) await rm(path, { recursive: true, force: true });
  };
  return { context, cleanUp };
}
