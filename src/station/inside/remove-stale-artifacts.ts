import { RunId, SandboxId } from "../../contract/ids.ts";
import type { Log } from "../../log/log.ts";
import type { Store } from "../../sandbox/store.ts";
import { runStream, sandboxOf, sandboxStream } from "../vocabulary/station-names.ts";
import { createArtifacts } from "./artifacts.ts";

const DAY_MS = 86_400_000;
/** How long the log of a removed sandbox stays readable. */
const LOG_DAYS = 7;
const STREAMS_MAX = 10_000;

/** Removes artifacts of removed runs and sandboxes, and logs of sandboxes removed long ago. */
export async function forgetGone(options: { stateDir: string; store: Store; log: Log; nowMs: number }): Promise<void> {
  const { store, log, nowMs } = options;
  const artifacts = createArtifacts(options);
  const { records, damaged } = await store.list();
  const there = new Set([...records, ...damaged].map(({ id }) => id));
  for (const subject of await artifacts.subjects()) {
    const isGone =
      (SandboxId.safeParse(subject).success && !there.has(subject)) ||
      (RunId.safeParse(subject).success && (await log.lastSeq(runStream(subject))) === 0);
    if (isGone) await artifacts.remove(subject);
  }
  const before = new Date(nowMs - LOG_DAYS * DAY_MS).toISOString();
  const { heads } = await log.heads({ prefix: sandboxStream(""), updated: { before }, limit: STREAMS_MAX });
  for (const { stream } of heads) if (!there.has(sandboxOf(stream))) await log.remove(stream);
}
