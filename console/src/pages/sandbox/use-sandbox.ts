import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import type { SandboxInfo } from "../../../../src/contract/sandbox.ts";
import { keys } from "../../station/queries.ts";
import { useStation } from "../../station/station.tsx";

const LOOK_MS = 4_000;

/** One sandbox, looked at again and again: it may be paused or removed by somebody else. */
export function useSandbox(id: string): UseQueryResult<SandboxInfo> {
  const station = useStation();
  return useQuery({
    queryKey: keys.sandbox(id),
    queryFn: ({ signal }) => station.sandboxes.get(id, { signal }),
    refetchInterval: LOOK_MS,
  });
}

/** What each tab is given. */
export interface SandboxPart {
  sandbox: SandboxInfo;
}
