import { basename, isAbsolute } from "node:path";
import { mapRecords } from "../identity/identity.ts";
import { SANDBOX_IDS } from "../identity/sub-ids.ts";
import type { PlanRecord } from "../launch/launcher.ts";
import { type PlaceLayer, placeLayer } from "./layers.ts";

/** The name of the folder in the launcher's stage that shows a session's layer folder. */
const STAGE_NAME = "l/session";

/**
 * Lets a sandbox write to a session's layers although its id range is not theirs: `stored` is where their range begins,
 * `root` where the sandbox's does. On disk, everything keeps the session's range. The host's root is mapped to itself,
 * since it creates what the overlays need.
 */
export function placeMapped(
  layer: string,
  { stored, root }: { stored: number; root: number },
): { records: PlanRecord[]; place: PlaceLayer } {
  const name = `session-${stored}`;
  const lines = [
    { inside: 0, outside: 0, count: 1 },
    { inside: stored, outside: root, count: SANDBOX_IDS },
  ];
  const inStage = (path: string) => `${STAGE_NAME}/${basename(path)}`;
  return {
    records: [...mapRecords(name, lines, lines), ["layer", basename(STAGE_NAME), layer, "rw", name]],
    place(part, { owner }) {
      const { upper, work } = part;
      // In the sandbox's own folder.
      if (!isAbsolute(upper)) return placeLayer(part, { owner });
      const [upperInStage, workInStage] = [inStage(upper), inStage(work)];
      const records = [upperInStage, workInStage].map((path): PlanRecord => ["mkdir", path, "755", owner, owner]);
      return { upper: upperInStage, work: workInStage, records, names: [] };
    },
  };
}
