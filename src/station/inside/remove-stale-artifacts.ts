import { RunId, SandboxId } from "../../contract/ids.ts";
import type { Log } from "../../log/log.ts";
import type { Store } from "../../sandbox/store.ts";
import { runStream, sandboxOf, sandboxStream } from "../vocabulary/station-names.ts";
import { createArtifacts } from "./artifacts.ts";

const DAY_MS = 86_400_000;
/** How long the log of a removed sandbox stays readable. */
const LOG_DAYS = 7;
const STREAMS_MAX = 10_000;

interface Stored {
  stateDir: string;
  store: Store;
  log: Log;
}

/** Removes artifacts of removed runs and sandboxes, and logs of sandboxes removed long ago. */
export async function removeStaleArtifacts(options: Stored & { nowMs: number }): Promise<void> {
  const { log, nowMs } = options;
  const artifacts = createArtifacts(options);
  for (const subject of await staleSubjects(options)) await artifacts.remove(subject);
  const there = await knownSandboxes(options);
  const before = new Date(nowMs - LOG_DAYS * DAY_MS).toISOString();
  const { heads } = await log.heads({ prefix: sandboxStream(""), updated: { before }, limit: STREAMS_MAX });
  for (const { stream } of heads) if (!there.has(sandboxOf(stream))) await log.remove(stream);
}

/** Returns the removed runs and sandboxes that have artifacts. */
export async function staleSubjects(options: Stored): Promise<string[]> {
  const subjects = await createArtifacts(options).subjects();
  const sandboxes = await knownSandboxes(options);
  const stale: string[] = [];
  for (const subject of subjects) if (await isStale(subject, sandboxes, options.log)) stale.push(subject);
  return stale;
}

/** Removes the artifacts of a removed run or sandbox. Returns false if the run or sandbox still exists. */
export async function removeIfStale(subject: string, options: Stored): Promise<boolean> {
  if (!(await isStale(subject, await knownSandboxes(options), options.log))) return false;
  await createArtifacts(options).remove(subject);
  return true;
}

/** Returns whether a run or a sandbox was removed. */
async function isStale(subject: string, sandboxes: ReadonlySet<string>, log: Log): Promise<boolean> {
  if (SandboxId.safeParse(subject).success) return !sandboxes.has(subject);
  return RunId.safeParse(subject).success && (await log.lastSeq(runStream(subject))) === 0;
}

async function knownSandboxes({ store }: Pick<Stored, "store">): Promise<Set<string>> {
  const { records, damaged } = await store.list();
  return new Set([...records, ...damaged].map(({ id }) => id));
}
