import { join } from "node:path";

/** Returns the path where a station listens for programs in sandboxes, each with its sandbox's token. */
export const insideSocket = (stateDir: string): string => join(stateDir, "station", "inside");
