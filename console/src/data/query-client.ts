import { QueryClient } from "@tanstack/react-query";
import { CaissonError } from "../../../src/contract/error/error.ts";

/** Creates the cache. Events invalidate it. The live stream keeps retrying while the station is unreachable. */
export function createQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 30_000,
        refetchOnWindowFocus: false,
        retry: (count, error) => count < 2 && error instanceof CaissonError && error.code === "unavailable",
      },
    },
  });
}
