import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import { makeEvent } from "../../contract/event/event-family.ts";
import { SandboxId } from "../../contract/ids.ts";
import type { SandboxInfo } from "../../contract/sandbox/sandbox.ts";
import { type NewSandboxLogEvent, type SandboxFacts, sandboxLogEvents } from "../../contract/sandbox/sandbox-log-event.ts";
import { defined } from "../../lib/defined.ts";
import { ABSENT, ifErrno } from "../../lib/failures.ts";
import type { Log } from "../../log/log.ts";
import { watchFolder } from "../../network/sandbox-network/watch-folder.ts";
import { recordStamp } from "../../sandbox/record-stamp.ts";
import { infoOf, isWaiting, type Store } from "../../sandbox/store.ts";
import { RUN_LABEL, sandboxOf, sandboxStream } from "../vocabulary/station-names.ts";
import type { SandboxChange } from "./local-sandboxes.ts";

/** How often we check all sandboxes, because other processes change their states, too. */
const LOOK_MS = 1_000;
const OPEN_MAX = 10_000;

export interface ChronicleOptions {
  stateDir: string;
  store: Store;
  log: Log;
  /** Calls the listener with changes that this process makes to sandboxes; returns a function that unsubscribes. */
  listen: (listener: (change: SandboxChange) => void) => () => void;
  onDefect: (error: unknown) => void;
}

type LiveState = "running" | "paused";

/**
 * Records the creation, the states and the end of every sandbox of this state folder in its log. Only the station does
 * this, by comparing the records with the log. So each event appears once, even if another process caused it, and a new
 * station adds the events from the time without a station. Stops when disposed of.
 */
export function startChronicle(options: ChronicleOptions): AsyncDisposable {
  const { log, store, onDefect } = options;
  const folder = join(options.stateDir, "sandboxes");
  /** The live sandboxes according to the log, with the stamps of their records at the time. */
  const known = new Map<SandboxId, { state: LiveState; stamp: string | null }>();
  let working = Promise.resolve();
  let isLooking = false;
  let isEnding = false;
  // Runs one task at a time, so that two tasks cannot both find the same event missing.
  const enqueue = (work: () => Promise<void>) => {
    working = working.then(async () => {
      if (!isEnding) await work().catch(onDefect);
    });
  };
  const append = async (id: SandboxId, events: readonly NewSandboxLogEvent[]) => {
    await log.append(
      sandboxStream(id),
      events.map((event) => makeEvent(sandboxLogEvents, event)),
    );
  };
  const live = async (info: SandboxInfo, stamp: string | null) => {
    const { id } = info;
    const state = info.state === "paused" ? "paused" : "running";
    const before = known.get(id)?.state ?? (await lifeOf(log, id));
    // The end is the last event: ids are never reused.
    if (before === "ended") return;
    const events: NewSandboxLogEvent[] = before === null ? [createdEvent(info)] : [];
    if (state !== (before ?? "running")) {
      events.push({ type: state === "paused" ? "sandbox.paused" : "sandbox.resumed", data: { sandbox: id } });
    }
    if (events.length > 0) await append(id, events);
    known.set(id, { state, stamp });
  };
  const noteGone = async (id: SandboxId, why: "destroyed" | "lost") => {
    const before = known.get(id)?.state ?? (await lifeOf(log, id));
    if (before !== null && before !== "ended") await append(id, [{ type: "sandbox.ended", data: { sandbox: id, why } }]);
    known.delete(id);
  };
  const noteLabels = async ({ id: sandbox, changes }: Extract<SandboxChange, { kind: "labelled" }>) => {
    await look(sandbox);
    if (known.has(sandbox)) await append(sandbox, [{ type: "sandbox.labelled", data: { sandbox, changes } }]);
  };
  const look = async (id: SandboxId) => {
    const stamp = await recordStamp(join(folder, id));
    if (stamp !== null && known.get(id)?.stamp === stamp) return;
    const record = await store.read(id).catch(notThere);
    if (record === "gone") return await noteGone(id, "destroyed");
    if (record === "damaged" || isWaiting(record)) return;
    if (record.state === "running" || record.state === "paused") await live(infoOf(record), stamp);
  };
  const lookAtAll = async () => {
    isLooking = false;
    const names = await ifErrno(readdir(folder), ABSENT, []);
    for (const name of names) if (SandboxId.safeParse(name).success) await look(name).catch(onDefect);
    const there = new Set(names);
    for (const id of known.keys()) if (!there.has(id)) await look(id);
  };
  const soon = () => {
    if (isLooking) return;
    isLooking = true;
    enqueue(lookAtAll);
  };
  let watching: { close(): void } | undefined;
  const begin = async () => {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const { heads } = await log.heads({ prefix: sandboxStream(""), open: true, limit: OPEN_MAX });
    for (const { stream } of heads) await look(sandboxOf(stream)).catch(onDefect);
    if (!isEnding) watching = watchFolder(folder, onFile);
    await lookAtAll();
  };
  const onFile = (name: string | null) => {
    if (name === null) soon();
    else if (SandboxId.safeParse(name).success) enqueue(() => look(name));
  };
  enqueue(begin);
  const timer = setInterval(soon, LOOK_MS).unref();
  const unlisten = options.listen((change) => {
    // A sandbox that is gone by the time we check still gets its events.
    enqueue(() => (change.kind === "ended" ? look(change.id) : change.kind === "labelled" ? noteLabels(change) : live(change.info, null)));
  });
  return {
    async [Symbol.asyncDispose]() {
      unlisten();
      clearInterval(timer);
      await working;
      isEnding = true;
      watching?.close();
      await working;
    },
  };
}

function createdEvent({ id: sandbox, runtime, warnings, owner, name, labels }: SandboxInfo): NewSandboxLogEvent {
  return { type: "sandbox.created", data: { sandbox, runtime, warnings, owner, ...defined({ name, run: labels[RUN_LABEL] }) } };
}

/** Returns a sandbox's state according to its log. */
async function lifeOf(log: Log, id: SandboxId): Promise<LiveState | "ended" | null> {
  const head = await log.head(sandboxStream(id));
  return (head?.head as unknown as SandboxFacts | undefined)?.life?.state ?? null;
}

function notThere(error: unknown): "gone" | "damaged" {
  if (!(error instanceof CaissonError)) throw error;
  return error.code === "not_found" ? "gone" : "damaged";
}
