import { useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import { useStation } from "../../../data/station.tsx";
import type { Listings } from "./tree-rows.ts";

const FOLDER_ENTRIES_MAX = 2_000;
const SEARCHED_ENTRIES_MAX = 10_000;
const SEARCHED_DEPTH = 20;
const LOOK_MS = 4_000;

const folderKey = (sandbox: string, path: string) => ["folder", sandbox, path] as const;

/** Returns the content of these folders, refetched while they are shown. */
export function useFolders(sandbox: string, paths: readonly string[]): { listings: Listings; error: unknown; isLoading: boolean } {
  const station = useStation();
  const answers = useQueries({
    queries: paths.map((path) => ({
      queryKey: folderKey(sandbox, path),
      queryFn: ({ signal }: { signal: AbortSignal }) => station.files.list(sandbox, { path, limit: FOLDER_ENTRIES_MAX }, { signal }),
      refetchInterval: LOOK_MS,
    })),
  });
  const listings: Listings = new Map(answers.flatMap(({ data }, index) => (data === undefined ? [] : [[paths[index] ?? "", data]])));
  // It is not an error if an open folder was removed, but the first one must exist.
  return { listings, error: answers[0]?.error ?? null, isLoading: answers[0]?.isPending ?? false };
}

export function useFoldersAgain(sandbox: string): () => Promise<void> {
  const queries = useQueryClient();
  return useCallback(() => queries.invalidateQueries({ queryKey: ["folder", sandbox] }), [queries, sandbox]);
}

/** Returns all paths below a root, up to a limit. Fetched when the user searches. */
export function useAllPaths(sandbox: string, root: string, { isWanted }: { isWanted: boolean }) {
  const station = useStation();
  return useQuery({
    queryKey: ["paths", sandbox, root],
    queryFn: ({ signal }) => station.files.list(sandbox, { path: root, depth: SEARCHED_DEPTH, limit: SEARCHED_ENTRIES_MAX }, { signal }),
    enabled: isWanted,
    staleTime: 10_000,
  });
}
