import { ownedStation } from "../station/owners/owned-station.ts";
import type { LocalVerbs } from "./station.ts";

/** What a station that serves does by itself, besides answering. It ends when it is disposed of. */
export function startWork(station: LocalVerbs, { onDefect }: { onDefect: (error: unknown) => void }): AsyncDisposable {
  const end = new AbortController();
  const { signal } = end;
  const works = [
    station.sandboxes.sweep(),
    station.audit.forgetOld(),
    station.uploads.sweep(),
    station.webhooks.deliver({ stationFor: (view) => ownedStation(station, view), onDefect, signal }),
  ].map((work) => work.catch(onDefect));
  const begun = [station.chronicle(onDefect), station.watch(onDefect)].map((each) => each.catch(onDefect));
  return {
    async [Symbol.asyncDispose]() {
      end.abort();
      for (const each of await Promise.all(begun)) await each?.[Symbol.asyncDispose]();
      await Promise.all(works);
    },
  };
}
