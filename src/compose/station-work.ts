import { ownedStation } from "../station/owners/owned-station.ts";
import { sweepRegularly } from "../station/sandboxes/sweep-regularly.ts";
import type { LocalVerbs } from "./station.ts";

/** Without a station every command sweeps; with one, none does. A look into two folders, and at the records in one. */
const SWEEP_EVERY_MS = 15_000;

/** What a station that serves does by itself, besides answering. It ends when it is disposed of. */
export function startWork(station: LocalVerbs, { onDefect }: { onDefect: (error: unknown) => void }): AsyncDisposable {
  const end = new AbortController();
  const { signal } = end;
  const works = [
    station.sandboxes.sweep(),
    station.audit.forgetOld(),
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
