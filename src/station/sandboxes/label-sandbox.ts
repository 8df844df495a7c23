import { ChangeLabels, changedLabels } from "../../contract/change-labels.ts";
import type { SandboxId } from "../../contract/ids.ts";
import { parseRequest } from "../../contract/parse-request.ts";
import type { SandboxRecord, Store } from "../../sandbox/store.ts";

/** See `SandboxVerbs.label`. `changes` is null where nothing changed. */
export async function labelSandbox(
  id: SandboxId,
  given: ChangeLabels,
  store: Store,
): Promise<{ record: SandboxRecord; changes: ChangeLabels | null }> {
  const changes = parseRequest(ChangeLabels, given, "labels");
  const record = await store.read(id);
  const { labels } = record.spec;
  const after = changedLabels("sandbox", labels, changes);
  if (Object.keys(changes).every((key) => after[key] === labels[key])) return { record, changes: null };
  await store.label(id, after);
  return { record: { ...record, spec: { ...record.spec, labels: after } }, changes };
}
