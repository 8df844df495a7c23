import { parseRequest } from "../../contract/parse-request.ts";
import type { SandboxInfo } from "../../contract/sandbox.ts";
import { ListSandboxes, type SandboxList } from "../../contract/sandbox-verbs.ts";
import { isWaiting, type SandboxRecord, type Store } from "../../sandbox/store.ts";
import { pageOf } from "../pages.ts";
import { isAskedFor } from "./is-asked-for.ts";

/** See `SandboxVerbs.list`. */
export async function listSandboxes(
  request: ListSandboxes,
  { store, infoOf }: { store: Store; infoOf: (record: SandboxRecord) => SandboxInfo },
): Promise<SandboxList> {
  const asked = parseRequest(ListSandboxes, request, "a list of sandboxes");
  const { cursor, limit } = asked;
  const { records, damaged } = await store.list();
  const passing = records
    .filter((record) => !isWaiting(record))
    .map(infoOf)
    .filter((info) => passes(info, asked));
  const endOf = ({ createdAt, id }: SandboxInfo) => [createdAt, id] as const;
  const { items, next } = pageOf(passing, { what: "sandboxes", endOf, newestFirst: false, cursor, limit });
  return { sandboxes: items, damaged: cursor === undefined ? damaged.map(({ id, dir, reason }) => ({ id, dir, reason })) : [], next };
}

function passes(info: SandboxInfo, asked: ListSandboxes): boolean {
  const { state, label = [] } = asked;
  return (
    isAskedFor(info, asked) && (state === undefined || state.includes(info.state)) && label.every((each) => hasLabel(info.labels, each))
  );
}

function hasLabel(labels: Readonly<Record<string, string>>, asked: string): boolean {
  const at = asked.indexOf("=");
  const key = asked.slice(0, at);
  return Object.hasOwn(labels, key) && labels[key] === asked.slice(at + 1);
}
