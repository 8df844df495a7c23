import { type LocalParts, openLocalStation } from "../compose/local-station.ts";
import type { LocalStation } from "../station/local-station.ts";
import type { CliContext } from "./context.ts";
import { line } from "./line.ts";

export { agentPlaces, modelOptions } from "../compose/local-station.ts";
export type { LocalStation } from "../station/local-station.ts";

/** Everything a command about runs needs, made from the CLI's context. */
export function openStation(context: CliContext, options: { record?: string; replay?: string } = {}): LocalStation {
  const parts: LocalParts = { ...context, say: (text) => void context.stderr.print(line`caisson: ${text}`) };
  return openLocalStation(parts, options);
}
