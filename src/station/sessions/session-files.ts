import { CaissonError } from "../../contract/error/error.ts";
import { parseRequest } from "../../contract/error/parse-request.ts";
import type { Session } from "../../contract/session/session.ts";
import { ListSessionFiles, ReadSessionFile, type SessionFiles } from "../../contract/session/session-verbs.ts";
import { WORKSPACE } from "../../sandbox/path.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { withPointView } from "./point-view.ts";
import { type ChangesOptions, lookAtSession, withSandbox } from "./session-changes.ts";
import type { PointFiles } from "./step-files.ts";
import { guardViewConfig, type MakeViewConfig } from "./view-config.ts";

const ENTRIES_MAX = 10_000;
const FILE_BYTES_MAX = 16 * 1024 * 1024;

/** A session and the version of its files: `now`, or as stored. */
export interface SeenFiles {
  session: Session;
  version: PointFiles | "now";
}

/** See `SessionVerbs.files`. */
export async function listFiles(seen: SeenFiles, request: ListSessionFiles, options: ChangesOptions): Promise<SessionFiles> {
  const { path } = parseRequest(ListSessionFiles, request, "a list of files");
  return await inside(seen, options, async (sandbox) => {
    const { entries, truncated } = await sandbox.list(`${WORKSPACE}/${path}`, { depth: 1, entriesMax: ENTRIES_MAX });
    return { session: seen.session.id, path, entries: entries.map(({ uid: _, gid: __, ...entry }) => entry), truncated };
  });
}

/** See `SessionVerbs.readFile`. */
export async function* readFile(
  find: () => Promise<SeenFiles>,
  request: ReadSessionFile,
  options: ChangesOptions,
): AsyncGenerator<Uint8Array, void, void> {
  const { path } = parseRequest(ReadSessionFile, request, "a file");
  // We read the whole file before yielding, because the sandbox may end while the caller consumes it.
  yield* await inside(await find(), options, async (sandbox) => {
    const { kind, sizeBytes } = await sandbox.stat(`${WORKSPACE}/${path}`, { follow: false });
    if (kind !== "file") throw new CaissonError("unsupported", `${path} is a ${kind}, not a file`);
    if (sizeBytes > FILE_BYTES_MAX) throw tooLarge(path);
    const pieces: Uint8Array[] = [];
    let bytes = 0;
    for await (const piece of await sandbox.readFile(`${WORKSPACE}/${path}`)) {
      bytes += piece.length;
      if (bytes > FILE_BYTES_MAX) throw tooLarge(path);
      pieces.push(piece);
    }
    return pieces;
  });
}

const tooLarge = (path: string) => new CaissonError("too_large", `${path} is larger than ${FILE_BYTES_MAX} bytes`);

async function inside<Result>(
  { session, version }: SeenFiles,
  options: ChangesOptions,
  work: (sandbox: Sandbox) => Promise<Result>,
): Promise<Result> {
  // The session never had a sandbox, or only ones that failed before they had files, so we show what it started from.
  if (session.source.kind === "git" && session.commit === null)
    throw new CaissonError("not_found", `the session ${session.id} has no files yet`);
  const runtime: Runtime = await options.runtime(session.runtime ?? undefined);
  const { sessions, stateDir } = options;
  const makeConfig: MakeViewConfig = (then, how) => guardViewConfig(then, { ...how, stateDir });
  return await lookAtSession(session, options, async () => {
    if (version === "now") return await withSandbox(session, { ...options, runtime, makeConfig }, work);
    if (version !== null) return await withPointView(session, version, { ...options, runtime, makeConfig }, work);
    await using sandbox = await runtime.create(await makeConfig(session, { runtime, sessions, asBegun: true }));
    return await work(sandbox);
  });
}
