import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import type { SandboxInfo } from "../../../../src/contract/sandbox/sandbox.ts";
import { keys } from "../../data/queries.ts";
import { useStation } from "../../data/station.tsx";

const LOOK_MS = 4_000;

/** Returns one sandbox. Polls, because others may pause or remove it. */
export function useSandbox(id: string): UseQueryResult<SandboxInfo> {
  const station = useStation();
  return useQuery({
    queryKey: keys.sandbox(id),
    queryFn: ({ signal }) => station.sandboxes.get(id, { signal }),
    refetchInterval: LOOK_MS,
  });
}

/** The props of every tab. */
export interface SandboxPart {
  sandbox: SandboxInfo;
}
