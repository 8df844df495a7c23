import type { Dirent } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { ifErrno } from "../lib/failures.ts";
import { sweepTemporaries } from "../lib/replace-file.ts";
import { sweepRegularly } from "../station/sandboxes/sweep-regularly.ts";
import { ownedStation } from "../station/tenancy/owned-station.ts";
import type { LocalVerbs } from "./station.ts";

/**
 * Without a station, every command sweeps; otherwise only the station does. A sweep reads two folders, and the records
 * in one of them.
 */
const SWEEP_EVERY_MS = 15_000;

/** State folders whose subfolders contain replaceable records; we must not search any deeper. */
const RECORD_FOLDERS = ["sessions", "sandboxes"];

/** Removes the temporary files of killed processes. */
async function sweepState(stateDir: string): Promise<void> {
  for (const { name } of await foldersIn(stateDir)) await sweepTemporaries(join(stateDir, name));
  for (const folder of RECORD_FOLDERS)
    for (const { name } of await foldersIn(join(stateDir, folder))) await sweepTemporaries(join(stateDir, folder, name));
}

async function foldersIn(path: string): Promise<Dirent[]> {
  const entries = await ifErrno(readdir(path, { withFileTypes: true }), ["ENOENT"], []);
  return entries.filter((entry) => entry.isDirectory());
}

/** Starts the background work of a serving station. It ends when it is disposed of. */
export function startWork(
  station: LocalVerbs,
  { stateDir, onDefect }: { stateDir: string; onDefect: (error: unknown) => void },
): AsyncDisposable {
  const end = new AbortController();
  const { signal } = end;
  const works = [
    station.sandboxes.sweep(),
    station.audit.forgetOld(),
    sweepState(stateDir),
    station.uploads.sweep(),
    sweepRegularly(() => station.sandboxes.sweep(), { everyMs: SWEEP_EVERY_MS, onDefect, signal }),
    station.drive(onDefect),
    station.webhooks.deliver({ stationFor: (view) => ownedStation(station, view), onDefect, signal }),
  ].map((work) => work.catch(onDefect));
  const services = [station.chronicle(onDefect), station.watch(onDefect), station.guard(onDefect), station.sandboxes.keepIdle()].map(
    (each) => each.catch(onDefect),
  );
  return {
    async [Symbol.asyncDispose]() {
      end.abort();
      for (const each of await Promise.all(services)) await each?.[Symbol.asyncDispose]();
      await Promise.all(works);
    },
  };
}
