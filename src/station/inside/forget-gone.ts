import { SandboxId } from "../../contract/ids.ts";
import { RunId } from "../../contract/run.ts";
import type { Log } from "../../log/log.ts";
import type { Store } from "../../sandbox/store.ts";
import { sandboxOf, sandboxStream } from "../health/health-log.ts";
import { runStream } from "../runs/head-of-run.ts";
import { createArtifacts } from "./artifacts.ts";

const DAY_MS = 86_400_000;
/** What was told of a sandbox can be read for so long after its end. */
const LOG_DAYS = 7;
const STREAMS_MAX = 10_000;

/** Removes what programs left of runs and sandboxes that are gone, and what was told of sandboxes long gone. */
export async function forgetGone(options: { stateDir: string; store: Store; log: Log; nowMs: number }): Promise<void> {
  const { store, log, nowMs } = options;
  const artifacts = createArtifacts(options);
  const { records, damaged } = await store.list();
  const there = new Set([...records, ...damaged].map(({ id }) => id));
  for (const owner of await artifacts.owners()) {
    const isGone =
      (SandboxId.safeParse(owner).success && !there.has(owner)) ||
      (RunId.safeParse(owner).success && (await log.lastSeq(runStream(owner))) === 0);
    if (isGone) await artifacts.remove(owner);
  }
  const before = new Date(nowMs - LOG_DAYS * DAY_MS).toISOString();
  const { heads } = await log.heads({ prefix: sandboxStream(""), updated: { before }, limit: STREAMS_MAX });
  for (const { stream } of heads) if (!there.has(sandboxOf(stream))) await log.remove(stream);
}
