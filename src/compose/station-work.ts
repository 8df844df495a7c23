import type { Dirent } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { isErrno } from "../lib/is-errno.ts";
import { sweepTemporaries } from "../lib/replace-file.ts";
import { ownedStation } from "../station/owners/owned-station.ts";
import { sweepRegularly } from "../station/sandboxes/sweep-regularly.ts";
import type { LocalVerbs } from "./station.ts";

/** Without a station every command sweeps; with one, none does. A look into two folders, and at the records in one. */
const SWEEP_EVERY_MS = 15_000;

/** Folders of the state folder in whose folders records are replaced; what lies deeper is not ours to look through. */
const RECORD_FOLDERS = ["sessions", "sandboxes"];

/** Removes what killed processes were about to put in place of records. */
async function sweepState(stateDir: string): Promise<void> {
  for (const { name } of await foldersIn(stateDir)) await sweepTemporaries(join(stateDir, name));
  for (const folder of RECORD_FOLDERS)
    for (const { name } of await foldersIn(join(stateDir, folder))) await sweepTemporaries(join(stateDir, folder, name));
}

async function foldersIn(path: string): Promise<Dirent[]> {
  const entries = await readdir(path, { withFileTypes: true }).catch((error: unknown) => {
    if (isErrno(error, "ENOENT")) return [];
    throw error;
  });
  return entries.filter((entry) => entry.isDirectory());
}

/** What a station that serves does by itself, besides answering. It ends when it is disposed of. */
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
  const begun = [station.chronicle(onDefect), station.watch(onDefect), station.guard(onDefect), station.sandboxes.letRest()].map((each) =>
    each.catch(onDefect),
  );
  return {
    async [Symbol.asyncDispose]() {
      end.abort();
      for (const each of await Promise.all(begun)) await each?.[Symbol.asyncDispose]();
      await Promise.all(works);
    },
  };
}
