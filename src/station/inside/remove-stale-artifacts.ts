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
  const there = await knownSandboxes(options);
  const stale: string[] = [];
  for (const subject of subjects) {
    const isGone =
      (SandboxId.safeParse(subject).success && !there.has(subject)) ||
      (RunId.safeParse(subject).success && (await options.log.lastSeq(runStream(subject))) === 0);
    if (isGone) stale.push(subject);
  }
  return stale;
}

async function knownSandboxes({ store }: Pick<Stored, "store">): Promise<Set<string>> {
  const { records, damaged } = await store.list();
  return new Set([...records, ...damaged].map(({ id }) => id));
}
