import type { McpBounds } from "../../contract/api/mcp-bounds.ts";
import type { Station } from "../../verbs/station.ts";
import type { ClientHolds } from "./client-holds.ts";

export type McpStation = Pick<Station, "sandboxes" | "sessions" | "runs" | "networks" | "agents">;

/** The state that the tools of one client share. */
export interface McpContext {
  readonly station: McpStation;
  readonly bounds: McpBounds;
  readonly held: ClientHolds;
  /** The caller's name in event logs. */
  readonly by: string;
}
