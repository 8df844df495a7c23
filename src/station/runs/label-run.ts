import { parseRequest } from "../../contract/error/parse-request.ts";
import { ChangeLabels, changedLabels } from "../../contract/label/change-labels.ts";
import type { Log } from "../../log/log.ts";
import { appendUnowned } from "../vocabulary/append-unowned.ts";

/** See `RunVerbs.label`. */
export async function labelRun(run: string, request: ChangeLabels, { by, log }: { by: string; log: Log }): Promise<void> {
  const changes = parseRequest(ChangeLabels, request, "labels");
  const make: Parameters<typeof appendUnowned>[2] = ({ labels }) => {
    const after = changedLabels("run", labels, changes);
    // We append no event for a change that changes nothing.
    const isSame = Object.keys(changes).every((key) => after[key] === labels[key]);
    return isSame ? null : { type: "run.labelled", data: { by, changes } };
  };
  await appendUnowned(log, run, make, { alsoEnded: true });
}
