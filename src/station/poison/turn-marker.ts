import { closeSync, openSync, writeSync } from "node:fs";
import { readFile, rm, writeFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { Worker } from "node:worker_threads";
import { ABSENT, ifErrno } from "../../lib/failures.ts";
import { markTurns, type Turn, type TurnMarker } from "../../lib/turns.ts";
import { readTurn, TURN_BYTES, turnFiles } from "./turn-files.ts";
import type { WatchedLoop } from "./turn-watch-main.ts";

/** Consecutive stations that died in the same turn before it is blamed: three in a row are not a coincidence. */
const DEATHS_MAX = 3;
const LOOK_EVERY_MS = 250;
/** Five seconds without a turn of the event loop. */
const LOOKS_MAX = 20;
const NOTHING = Buffer.from("-");

export interface MarkedTurns extends AsyncDisposable {
  /** The turn that crashed the previous station. Null if that station ended normally or died for another reason. */
  readonly poisoned: Turn | null;
}

/**
 * Marks each turn of a stream in a file beside the station's lock, which outlives the process. A station that dies
 * within a turn leaves its mark. The mark alone proves little: a busy station that is killed is often within some turn.
 * A turn is blamed if a thread saw it block the event loop, or if stations died in it repeatedly.
 */
export async function openTurnMarker(stationDir: string): Promise<MarkedTurns> {
  const files = turnFiles(stationDir);
  const poisoned = await lookBack(files);
  const fd = openSync(files.turn, "w", 0o600);
  const beats = new Int32Array(new SharedArrayBuffer(4));
  const record = Buffer.alloc(TURN_BYTES);
  const marker: TurnMarker = {
    begin(turn) {
      Atomics.add(beats, 0, 1);
      record.fill(" ");
      record.write(JSON.stringify(turn));
      writeSync(fd, record, 0, TURN_BYTES, 0);
    },
    end: () => void writeSync(fd, NOTHING, 0, 1, 0),
  };
  marker.end();
  markTurns(marker);
  const beating = setInterval(() => Atomics.add(beats, 0, 1), LOOK_EVERY_MS);
  beating.unref();
  const watching = watch({ ...files, beats: beats.buffer as SharedArrayBuffer, everyMs: LOOK_EVERY_MS, looksMax: LOOKS_MAX });
  const close = async () => {
    markTurns(null);
    clearInterval(beating);
    await watching.terminate();
    closeSync(fd);
    await Promise.all([files.turn, files.stuck].map((path) => rm(path, { force: true })));
  };
  let closing: Promise<void> | null = null;
  // A server closes it on its signal, and disposes of it later.
  return { poisoned, [Symbol.asyncDispose]: () => (closing ??= close()) };
}

function watch(workerData: WatchedLoop): Worker {
  const program = join(import.meta.dirname, `turn-watch-main${extname(import.meta.filename)}`);
  const watching = new Worker(program, { workerData, env: {}, resourceLimits: { maxOldGenerationSizeMb: 32 } });
  // A station works without the thread: then only repeated deaths blame a turn.
  watching.on("error", () => undefined);
  watching.unref();
  return watching;
}

async function lookBack({ turn, stuck, deaths }: ReturnType<typeof turnFiles>): Promise<Turn | null> {
  const died = readTurn(await textOf(turn));
  const wasStuck = readTurn(await textOf(stuck));
  await rm(stuck, { force: true });
  if (died === null) {
    await rm(deaths, { force: true });
    return null;
  }
  const before = await textOf(deaths);
  const known = readTurn(before);
  const count = 1 + (isSame(known, died) ? Number((JSON.parse(before) as { count?: number }).count ?? 0) : 0);
  const isPoisoned = isSame(wasStuck, died) || count >= DEATHS_MAX;
  if (isPoisoned) await rm(deaths, { force: true });
  else await writeFile(deaths, JSON.stringify({ ...died, count }), { mode: 0o600 });
  return isPoisoned ? died : null;
}

const isSame = (one: Turn | null, other: Turn) => one !== null && one.stream === other.stream && one.seq === other.seq;

async function textOf(path: string): Promise<string> {
  return await ifErrno(readFile(path, "utf8"), ABSENT, "");
}
