import { createHash } from "node:crypto";
import type { z } from "zod";
import { CaissonError } from "../../../contract/error/error.ts";
import { SandboxConfig, type Template } from "../../../contract/sandbox/sandbox.ts";
import type { BuildEvent, BuildTemplate } from "../../../contract/template/template-verbs.ts";
import { canonicalJson } from "../../../lib/canonical-json.ts";
import type { Crashpoint } from "../../../lib/crashpoint.ts";
import { defined } from "../../../lib/defined.ts";
import { ignore } from "../../../lib/failures.ts";
import { temporaryName } from "../../../lib/replace-file.ts";
import type { OwnedSandbox } from "../../../sandbox/sandbox.ts";
import type { TemplateStore } from "../../built-templates/template-store.ts";
import type { LocalSandboxes } from "../../sandboxes/local-sandboxes.ts";
import { BUILD_LABEL, buildSnapshotName } from "../../vocabulary/station-names.ts";
import type { BuildContext } from "../context/build-context.ts";
import type { StepRecord, StepStore } from "./step-store.ts";
import { restoreTmp, storeTmp } from "./tmp-files.ts";

/** The events of a build; a generator returns a value when its part is done. */
export type Building<Result> = AsyncGenerator<BuildEvent, Result, void>;

/** What one build works with. */
export interface BuildRun {
  id: string;
  owner: string;
  request: z.output<typeof BuildTemplate>;
  context: BuildContext;
  steps: StepStore;
  templates: TemplateStore;
  sandboxes: Pick<LocalSandboxes, "create">;
  stateDir: string;
  signal: AbortSignal | undefined;
  crashpoint: Crashpoint;
  /** Counts the snapshots of this build. */
  counter: { snapshots: number };
}

/** Files at one point of a build: where the next step's sandbox starts. */
export interface Files {
  /** Identifies everything the files come from. */
  key: string;
  template: Template;
  /** The runtime that has them. Absent: the requested one. */
  runtime: string | undefined;
  /** The step that wrote them; null for files that no step of a build wrote. */
  record: StepRecord | null;
}

/** One step that changes files. */
export interface Step {
  /** Everything besides the files before it that it depends on. */
  inputs: unknown;
  stage: string;
  line: number;
  text: string;
  /** What it leaves out, each as a sentence. */
  notices?: readonly string[];
  /** Whether its commands use the build's network. */
  usesNetwork: boolean;
  /** Changes the files, with or without events. */
  work: (sandbox: OwnedSandbox) => AsyncIterable<BuildEvent> | Promise<void>;
}

/** Raised when the meaning of a step changes, so that older records do not count. */
const STEP_VERSION = 1;

export function keyOf(...parts: readonly unknown[]): string {
  return createHash("sha256")
    .update(canonicalJson([STEP_VERSION, ...parts]))
    .digest("hex");
}

/** Returns the files after a step: from the cache, or by doing its work in a new sandbox. */
export async function* takeStep(build: BuildRun, files: Files, step: Step): Building<Files> {
  for (const notice of step.notices ?? []) yield { notice };
  const key = keyOf("step", files.key, step.inputs);
  const about = { stage: step.stage, line: step.line, text: step.text };
  const known = build.request.noCache ? null : await build.steps.find(key);
  if (known !== null) {
    yield { step: { ...about, state: "cached" } };
    return filesOf(known);
  }
  yield { step: { ...about, state: "started" } };
  const sandbox = await openSandbox(build, files, { usesNetwork: step.usesNetwork });
  // Without its sandbox, a running command or copy ends at once.
  const stop = () => void ignore(sandbox.destroy(), "destroyed again below, which reports a failure");
  build.signal?.addEventListener("abort", stop, { once: true });
  try {
    const working = step.work(sandbox);
    if (working instanceof Promise) await working;
    else yield* working;
    const record = await saveStep(build, sandbox, { key, files, text: step.text });
    yield { step: { ...about, state: "ended" } };
    return filesOf(record);
  } catch (error) {
    throw build.signal?.aborted ? new CaissonError("cancelled", "the build was interrupted", { cause: error }) : error;
  } finally {
    build.signal?.removeEventListener("abort", stop);
    await sandbox.destroy();
  }
}

/** Creates a sandbox with the files, in which root works. The caller destroys it. */
export async function openSandbox(build: BuildRun, files: Files, { usesNetwork }: { usesNetwork: boolean }): Promise<OwnedSandbox> {
  const { request, owner, signal } = build;
  const spec = SandboxConfig.parse({
    template: files.template,
    allowRoot: true,
    limits: request.limits,
    network: usesNetwork ? request.network : { mode: "none" },
    labels: { [BUILD_LABEL]: build.id },
  });
  const runtime = files.runtime ?? request.runtime;
  const sandbox = await build.sandboxes.create({ spec, ...defined({ runtime }) }, { owner, ...defined({ signal }) });
  try {
    if (files.record?.hasTmp) await restoreTmp(sandbox, build.steps.tmpFile(files.record.key));
    return sandbox;
  } catch (error) {
    await sandbox.destroy();
    throw error;
  }
}

/**
 * Stores the sandbox's files under the step's key: first the snapshot and the archive of /tmp, then the record, which
 * makes them count.
 */
async function saveStep(
  build: BuildRun,
  sandbox: OwnedSandbox,
  { key, files, text }: { key: string; files: Files; text: string },
): Promise<StepRecord> {
  const draft = temporaryName(build.steps.tmpFile(key));
  const hasTmp = await storeTmp(sandbox, draft, build);
  build.counter.snapshots += 1;
  build.crashpoint("build.snapshot:before");
  const snapshot = await sandbox.snapshot({ name: buildSnapshotName(build.id, build.counter.snapshots) });
  build.crashpoint("build.snapshot:after");
  if (hasTmp) await build.steps.saveTmp(key, draft);
  const record: StepRecord = {
    ...{ version: 1, key, snapshot, hasTmp, text },
    runtime: sandbox.info.runtime,
    parent: files.record?.key ?? null,
    bytes: (files.record?.bytes ?? 0) + (await build.steps.bytesOf({ runtime: sandbox.info.runtime, snapshot })),
    createdAt: new Date().toISOString(),
  };
  await build.steps.save(record);
  return record;
}

function filesOf(record: StepRecord): Files {
  return { key: record.key, template: { kind: "snapshot", id: record.snapshot }, runtime: record.runtime, record };
}
