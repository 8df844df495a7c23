import { chmod, chown, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Capabilities } from "../../contract/sandbox.ts";
import { SandboxSpec, type SandboxSpecInput } from "../../contract/sandbox.ts";
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
  /** Laid under every spec the tests ask for; how a runtime that has no `host` template gets its image. */
  spec?: SandboxSpecInput;
  patienceMs?: number;
}

/** Runs tests against one runtime, one at a time, with a sandbox shared by those that can share one. */
export interface ConformanceRun extends AsyncDisposable {
  readonly capabilities: Capabilities;
  run(test: ConformanceTest): Promise<ConformanceResult>;
}

const PATIENCE_MS = 15_000;
/** How many times its patience a whole test may take: whatever a test forgot to bound ends here. */
const TEST_PATIENCES = 6;
const ORDINARY_UID = 1000;

export async function openConformanceRun(runtime: Runtime, options: ConformanceOptions = {}): Promise<ConformanceRun> {
  const capabilities = await runtime.capabilities();
  const patienceMs = options.patienceMs ?? PATIENCE_MS;
  const shared = sharedSandbox(runtime, specOf(options));
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

/** The whole suite, without a test framework; for `doctor` and for runtimes that live in other packages. */
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

function specOf(options: ConformanceOptions) {
  return (spec: SandboxSpecInput = {}): SandboxSpec => SandboxSpec.parse({ ...options.spec, ...spec });
}

interface Shared {
  get(): Promise<OwnedSandbox>;
  close(): Promise<void>;
}

/** Made when first asked for, and again when a test left it unusable. */
function sharedSandbox(runtime: Runtime, spec: (input?: SandboxSpecInput) => SandboxSpec): Shared {
  let current: OwnedSandbox | null = null;
  return {
    async get() {
      if (current !== null) {
        try {
          await within({ patienceMs: 2_000 }, "ping of the shared sandbox", current.ping());
        } catch {
          await current.destroy().catch(() => undefined);
          current = null;
        }
      }
      current ??= await runtime.create(spec());
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
  const spec = specOf(options);
  const sandboxes = new Set<OwnedSandbox>();
  const made: Promise<OwnedSandbox>[] = [];
  const hostFolders: string[] = [];
  const context: ConformanceContext = {
    runtime,
    capabilities,
    patienceMs,
    spec,
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
      const creating = runtime.create(spec(input));
      made.push(creating);
      return context.adopt(await within({ patienceMs: patienceMs * 2 }, "creating a sandbox", creating));
    },
    async hostFolder() {
      const path = await mkdtemp(join(tmpdir(), "caisson-test-"));
      // Whoever the sandbox's user is outside, the folder is to be usable; what tests put in it is not secret. Where
      // the suite is run by root it is made an ordinary user's, as workspaces are: some runtimes refuse to let commands
      // write to root's folders.
      await chmod(path, 0o777);
      if (process.getuid?.() === 0) await chown(path, ORDINARY_UID, ORDINARY_UID);
      hostFolders.push(path);
      return path;
    },
  };
  const cleanUp = async () => {
    // One that came too late for its test is not left either; one that never comes is not waited for.
    const late = Promise.allSettled(made.map(async (creating) => sandboxes.add(await creating)));
    await within({ patienceMs: patienceMs * TEST_PATIENCES }, "sandboxes that were being created", late).catch(() => undefined);
    for (const sandbox of sandboxes) await sandbox.destroy().catch(() => undefined);
    for (const path of hostFolders) await rm(path, { recursive: true, force: true });
  };
  return { context, cleanUp };
}
