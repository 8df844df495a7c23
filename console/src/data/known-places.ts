import { useQuery } from "@tanstack/react-query";
import { useOpenRuns } from "./queries.ts";
import { useStation } from "./station.tsx";

/** Enough to choose from; older values can be typed. */
const RUNS_LOOKED_AT = 200;
const OFFERED_MAX = 20;

export interface KnownPlaces {
  /** Folders on the station's machine that runs worked on. */
  folders: readonly string[];
  models: readonly string[];
}

/** Returns the folders and models of recent runs, latest first, as suggestions for forms. */
export function useKnownPlaces(): KnownPlaces {
  const station = useStation();
  const open = useOpenRuns().data?.runs ?? [];
  const { data } = useQuery({
    queryKey: ["known-places"],
    queryFn: ({ signal }) => station.runs.list({ limit: RUNS_LOOKED_AT }, { signal }),
    staleTime: 60_000,
  });
  const runs = [...(data?.runs ?? []), ...open];
  // A folder that was uploaded from another machine has no path here.
  const folders = runs.flatMap(({ folder, origin }) => (folder === null || origin !== null ? [] : [folder]));
  return { folders: firsts(folders), models: firsts(runs.map(({ model }) => model)) };
}

const firsts = (values: readonly string[]) => [...new Set(values)].slice(0, OFFERED_MAX);
