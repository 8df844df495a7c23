import { stat } from "node:fs/promises";
import { join } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import { parseRequest } from "../../contract/error/parse-request.ts";
import { AskSnapshotUsage, type SnapshotUsage, type SnapshotUsages } from "../../contract/machine/machine-verbs.ts";
import type { Session } from "../../contract/session/session.ts";
import { ABSENT, ifErrno } from "../../lib/failures.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { SessionStore } from "../../workspace/sessions.ts";
import { everySnapshot } from "../sandboxes/snapshots.ts";
import { copyFolders, createLayerMeasure, layerFolder } from "./layer-usage.ts";
import { newBound } from "./size-of.ts";

interface SnapshotUsageOptions {
  stateDir: string;
  sessions: SessionStore;
  runtimes: () => Promise<readonly Runtime[]>;
}

/** See `MachineVerbs.snapshotUsage`. */
export async function snapshotUsage(request: AskSnapshotUsage, options: SnapshotUsageOptions): Promise<SnapshotUsages> {
  const { of } = parseRequest(AskSnapshotUsage, request, "the room of snapshots");
  const bound = newBound();
  const measure = createLayerMeasure({ stateDir: options.stateDir, bound });
  const usages = [...(await snapshotsOf(of, measure, options)), ...(await pointsOf(of, measure, options))];
  if (of !== undefined && usages.length === 0) {
    throw new CaissonError("not_found", `there is no snapshot, and no session with earlier states, called ${JSON.stringify(of)}`, {
      hint: "`caisson snapshot du` lists all of them.",
    });
  }
  return { usages, bytes: measure.total(), isMinimum: bound.entries <= 0 };
}

type Measure = ReturnType<typeof createLayerMeasure>;

async function snapshotsOf(
  of: string | undefined,
  measure: Measure,
  { stateDir, runtimes }: SnapshotUsageOptions,
): Promise<SnapshotUsage[]> {
  const usages: SnapshotUsage[] = [];
  for (const { snapshot } of await everySnapshot(await runtimes())) {
    const { id, name, createdAt, bytes } = snapshot;
    if (of !== undefined && name !== of && !(of.startsWith("sn_") && id.startsWith(of))) continue;
    const dir = join(stateDir, "snapshots", id);
    const isHere = (await ifErrno(stat(dir), ABSENT, null)) !== null;
    // Others are in a container engine, which measured them.
    if (!isHere) measure.addElsewhere(bytes);
    usages.push({
      ...{ kind: "snapshot", id, name, session: null, run: null, createdAt },
      ...(isHere ? await measure.measure(dir) : { ownBytes: bytes, sharedBytes: 0 }),
    });
  }
  return usages.sort((a, b) => (a.createdAt ?? "").localeCompare(b.createdAt ?? ""));
}

async function pointsOf(of: string | undefined, measure: Measure, options: SnapshotUsageOptions): Promise<SnapshotUsage[]> {
  const { sessions } = options;
  const usages: SnapshotUsage[] = [];
  for (const session of await sessions.list()) {
    if (of !== undefined && session.id !== of && session.name !== of) continue;
    usages.push(...(await pointsOfSession(session, measure, options)));
  }
  return usages;
}

async function pointsOfSession(session: Session, measure: Measure, { sessions, stateDir }: SnapshotUsageOptions): Promise<SnapshotUsage[]> {
  const copies = await copyFolders(sessions.paths(session).dir);
  const usages = new Map<string, SnapshotUsage>();
  for (const { run, at = null, files, bytes = 0 } of await sessions.points(session.id)) {
    if (files.kind === "snapshot" && files.id !== null && bytes > 0) {
      // It is in a container engine, which measured it.
      measure.addElsewhere(bytes);
      const about = { kind: "point" as const, id: files.id, name: null, session: session.id, run, createdAt: at };
      usages.set(files.id, { ...about, ownBytes: bytes, sharedBytes: 0 });
      continue;
    }
    const id = files.kind === "layer" ? files.copy : files.kind === "point" ? files.id : null;
    const path = files.kind === "layer" ? copies.get(files.copy) : id === null ? undefined : layerFolder(stateDir, id);
    // Several steps have the same point if nothing changed.
    if (id === null || path === undefined || usages.has(id)) continue;
    const about = { kind: "point" as const, id, name: null, session: session.id, run, createdAt: at };
    usages.set(id, { ...about, ...(await measure.measure(path)) });
  }
  return [...usages.values()].sort((a, b) => (a.createdAt ?? "").localeCompare(b.createdAt ?? ""));
}
