import type { McpBounds } from "../../contract/mcp-bounds.ts";
import type { Station } from "../../station/station.ts";
import type { HeldThings } from "./held-things.ts";

export type McpStation = Pick<Station, "sandboxes" | "sessions" | "runs" | "networks" | "agents">;

/** What the tools of one client share. */
export interface McpContext {
  readonly station: McpStation;
  readonly bounds: McpBounds;
  readonly held: HeldThings;
  /** As a log of events shall name the caller. */
  readonly by: string;
}
