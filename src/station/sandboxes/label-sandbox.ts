import { ChangeLabels, changedLabels } from "../../contract/change-labels.ts";
import type { SandboxId } from "../../contract/ids.ts";
import { parseRequest } from "../../contract/parse-request.ts";
import type { SandboxRecord, Store } from "../../sandbox/store.ts";
import type { SandboxChange } from "./local-sandboxes.ts";

/** See `SandboxVerbs.label`. Gives the record as it is then; what changes nothing is not told. */
export async function labelSandbox(
  id: SandboxId,
  given: ChangeLabels,
  { store, onChange }: { store: Store; onChange: (change: SandboxChange) => void },
): Promise<SandboxRecord> {
  const changes = parseRequest(ChangeLabels, given, "labels");
  const record = await store.read(id);
  const { labels } = record.spec;
  const after = changedLabels("sandbox", labels, changes);
  if (Object.keys(changes).every((key) => after[key] === labels[key])) return record;
  await store.label(id, after);
  onChange({ kind: "labelled", id, changes });
  return { ...record, spec: { ...record.spec, labels: after } };
}
