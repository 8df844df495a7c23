import { QueryClient } from "@tanstack/react-query";
import { CaissonError } from "../../../src/contract/error.ts";

/** What was read is kept and renewed when an event says so; a station that is away is asked again by the live stream. */
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
