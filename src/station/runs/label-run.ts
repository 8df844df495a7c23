import { ChangeLabels, changedLabels } from "../../contract/change-labels.ts";
import { parseRequest } from "../../contract/parse-request.ts";
import type { Log } from "../../log/log.ts";
import { appendForeign } from "./append-foreign.ts";

/** See `RunVerbs.label`. */
export async function labelRun(run: string, given: ChangeLabels, { by, log }: { by: string; log: Log }): Promise<void> {
  const changes = parseRequest(ChangeLabels, given, "labels");
  const make: Parameters<typeof appendForeign>[2] = ({ labels }) => {
    const after = changedLabels("run", labels, changes);
    // What changes nothing is not worth an event.
    const isSame = Object.keys(changes).every((key) => after[key] === labels[key]);
    return isSame ? null : { type: "run.labelled", data: { by, changes } };
  };
  await appendForeign(log, run, make, { alsoEnded: true });
}
