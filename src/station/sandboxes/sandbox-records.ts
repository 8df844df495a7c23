import { CaissonError } from "../../contract/error/error.ts";
import { parseRequest } from "../../contract/error/parse-request.ts";
import type { SandboxId } from "../../contract/ids.ts";
import { ChangeLabels, changedLabels } from "../../contract/label/change-labels.ts";
import type { SandboxInfo } from "../../contract/sandbox/sandbox.ts";
import { type CreateSandbox, ListSandboxes, type SandboxList, type SnapshotView } from "../../contract/sandbox/sandbox-verbs.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import { isWaiting, type SandboxRecord } from "../../sandbox/store.ts";
import type { SandboxVerbs } from "../../verbs/sandboxes.ts";
import { withBuiltTemplate } from "../built-templates/template-start.ts";
import { findSandbox } from "../names/find-sandbox.ts";
import { pageOf } from "../pages.ts";
import type { SandboxChange } from "./local-sandboxes.ts";
import { matchesFilter } from "./matches-filter.ts";
import { type RemoveContext, removeSandbox } from "./remove-sandbox.ts";
import { findSnapshot, isOfBuild, keepSnapshot, listSnapshots } from "./snapshots.ts";

interface RecordsContext extends RemoveContext {
  stateDir: string;
  infoOf: (record: SandboxRecord) => SandboxInfo;
  everyRuntime: () => Promise<Runtime[]>;
  hold: (id: SandboxId) => Promise<OwnedSandbox>;
  onChange: (change: SandboxChange) => void;
}

/** Lookups by id or name, and the verbs that need them. Starting a sandbox does not load them. */
export interface SandboxRecords extends Pick<SandboxVerbs, "label" | "list" | "remove" | "removeSnapshot" | "snapshot" | "snapshots"> {
  find(word: string): Promise<SandboxId>;
  findSnapshot(word: string): Promise<SnapshotView>;
  /** Replaces the template of a request by its snapshot. Throws `not_found`, `invalid`, `unsupported`. */
  withBuiltTemplate(request: CreateSandbox, owner: string): Promise<CreateSandbox>;
}

export function createSandboxRecords(context: RecordsContext): SandboxRecords {
  const { store, infoOf, everyRuntime } = context;
  const find = (word: string) => findSandbox(word, store);
  return {
    find,
    findSnapshot: async (word) => (await findSnapshot(await everyRuntime(), word)).snapshot,
    withBuiltTemplate: (request, owner) => withBuiltTemplate(request, { stateDir: context.stateDir, owner }),
    list: (request = {}) => listSandboxes(request, context),
    async label(word, changes) {
      return infoOf(await labelSandbox(await find(word), changes, context));
    },
    async remove(word) {
      await removeSandbox(await find(word), context);
    },
    async snapshot(word, request = {}) {
      const id = await find(word);
      const { owner } = infoOf(await store.read(id));
      return keepSnapshot(await everyRuntime(), { ...request, owner }, async (named) => {
        await using sandbox = await context.hold(id);
        return await sandbox.snapshot(named);
      });
    },
    snapshots: async (request = {}) => await listSnapshots(request, await everyRuntime()),
    async removeSnapshot(word) {
      const { snapshot, runtime } = await findSnapshot(await everyRuntime(), word);
      if (isOfBuild(snapshot))
        throw new CaissonError("conflict", `snapshot ${snapshot.id} belongs to a template or the build cache`, {
          hint: "Remove the template with `caisson template rm`, and its files with `caisson prune`.",
        });
      await runtime.removeSnapshot(snapshot.id);
    },
  };
}

/** See `SandboxVerbs.list`. */
async function listSandboxes(request: ListSandboxes, { store, infoOf }: Pick<RecordsContext, "store" | "infoOf">): Promise<SandboxList> {
  const query = parseRequest(ListSandboxes, request, "a list of sandboxes");
  const { cursor, limit } = query;
  const { records, damaged } = await store.list();
  const passing = records
    .filter((record) => !isWaiting(record))
    .map(infoOf)
    .filter((info) => passes(info, query));
  const endOf = ({ createdAt, id }: SandboxInfo) => [createdAt, id] as const;
  const { items, next } = pageOf(passing, { what: "sandboxes", endOf, newestFirst: false, cursor, limit });
  return { sandboxes: items, damaged: cursor === undefined ? damaged.map(({ id, dir, reason }) => ({ id, dir, reason })) : [], next };
}

function passes(info: SandboxInfo, query: ListSandboxes): boolean {
  const { state, label = [] } = query;
  return (
    matchesFilter(info, query) && (state === undefined || state.includes(info.state)) && label.every((each) => hasLabel(info.labels, each))
  );
}

function hasLabel(labels: Readonly<Record<string, string>>, label: string): boolean {
  const at = label.indexOf("=");
  const key = label.slice(0, at);
  return Object.hasOwn(labels, key) && labels[key] === label.slice(at + 1);
}

/** See `SandboxVerbs.label`. Returns the updated record. Does not report changes that change nothing. */
async function labelSandbox(
  id: SandboxId,
  request: ChangeLabels,
  { store, onChange }: Pick<RecordsContext, "store" | "onChange">,
): Promise<SandboxRecord> {
  const changes = parseRequest(ChangeLabels, request, "labels");
  const record = await store.read(id);
  const { labels } = record.spec;
  const after = changedLabels("sandbox", labels, changes);
  if (Object.keys(changes).every((key) => after[key] === labels[key])) return record;
  await store.label(id, after);
  onChange({ kind: "labelled", id, changes });
  return { ...record, spec: { ...record.spec, labels: after } };
}
