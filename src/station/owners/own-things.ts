import { CaissonError } from "../../contract/error.ts";
import { SandboxId } from "../../contract/ids.ts";
import type { OwnerView } from "../../contract/owner.ts";
import { RunId, SessionId } from "../../contract/run.ts";
import { defined } from "../../lib/defined.ts";
import { noSuchRun, runAmong } from "../names/find-run.ts";
import { noSuchSandbox, sandboxAmong } from "../names/find-sandbox.ts";
import { oneOf } from "../names/one-of.ts";
import { isSessionId, sessionIdOf } from "../names/session-id.ts";
import type { Station } from "../station.ts";

/** More than an error names. */
const CANDIDATES_MAX = 100;

/** What a word stands for among the things that somebody sees; throws for others as for what does not exist. */
export interface OwnThings {
  run(word: string): Promise<string>;
  sandbox(word: string): Promise<string>;
  snapshot(word: string): Promise<string>;
  /** A session, or a run in it. */
  session(word: string): Promise<string>;
  /** A session, a run in it, or a sandbox. */
  work(word: string): Promise<string>;
  /** A sandbox, or a run that has one. */
  network(word: string): Promise<string>;
}

type Parts = Pick<Station, "runs" | "sandboxes" | "sessions">;

export function ownThings(station: Parts, { owner, sees }: OwnerView): OwnThings {
  const own = strictlyOwn(station, owner);
  if (sees === "own") return own;
  // Who sees everything means their own by a name, and otherwise whatever there is.
  const first = (find: (word: string) => Promise<string>) => async (word: string) =>
    /^(?:sb|sn|run|ses)_/.test(word) ? word : ((await orNull(find(word))) ?? word);
  return {
    run: first(own.run),
    sandbox: first(own.sandbox),
    snapshot: first(own.snapshot),
    session: first(own.session),
    work: first(own.work),
    network: first(own.network),
  };
}

function strictlyOwn(station: Parts, owner: string): OwnThings {
  const run = async (word: string): Promise<string> => {
    if (RunId.safeParse(word).success) return (await station.runs.get(word)).owner === owner ? word : noSuchRun(word);
    const found = async (asked: { id?: string; name?: string; state?: "open" }) =>
      (await station.runs.list({ owner, limit: CANDIDATES_MAX, ...asked })).runs.map((view) => ({ id: view.run, name: view.name }));
    return await runAmong(word, {
      beginning: (id) => found({ id }),
      named: (name, { open }) => found({ name, ...defined({ state: open ? ("open" as const) : undefined }) }),
    });
  };
  const sandbox = async (word: string): Promise<string> => {
    if (SandboxId.safeParse(word).success) return (await isOwnSandbox(word, { station, owner })) ? word : noSuchSandbox(word);
    const found = async (asked: { name?: string }) => (await station.sandboxes.list({ sweep: false, owner, ...asked })).sandboxes;
    return await sandboxAmong(word, { all: () => found({}), named: (name) => found({ name }) });
  };
  const sessionAlone = async (word: string): Promise<string | null> => {
    const id = sessionIdOf(word, owner);
    const { sessions } = await station.sessions.list({ id: [id], owner });
    return sessions.length > 0 ? id : null;
  };
  const session = async (word: string): Promise<string> => {
    if (word.startsWith("run_")) return await run(word);
    // What cannot be a session's name is refused by whoever looks for it.
    if (!SessionId.safeParse(word).success) return word;
    const found = (await sessionAlone(word)) ?? (isSessionId(word) ? null : await orNull(run(word)));
    return found ?? oneOf(word, [], { what: "session", listedBy: "caisson session ls" });
  };
  return {
    run,
    sandbox,
    session,
    async snapshot(word) {
      const { snapshots } = await station.sandboxes.snapshots({ owner });
      const isId = word.startsWith("sn_");
      const found = snapshots.filter(({ id, name }) => (isId ? id.startsWith(word) : name === word));
      return oneOf(word, found, { what: "snapshot", listedBy: "caisson snapshot ls" });
    },
    async work(word) {
      if (word.startsWith("sb_")) return await sandbox(word);
      if (word.startsWith("run_") || !SessionId.safeParse(word).success) return await session(word);
      return (await sessionAlone(word)) ?? (isSessionId(word) ? null : await orNull(sandbox(word))) ?? (await session(word));
    },
    async network(word) {
      if (word.startsWith("sb_")) return await sandbox(word);
      return (word.startsWith("run_") ? null : await orNull(sandbox(word))) ?? (await run(word));
    },
  };
}

/** One whose record cannot be read is nobody's. */
async function isOwnSandbox(id: string, { station, owner }: { station: Parts; owner: string }): Promise<boolean> {
  try {
    return (await station.sandboxes.get(id)).owner === owner;
  } catch (error) {
    if (error instanceof CaissonError && (error.code === "internal" || error.code === "not_found")) return false;
    throw error;
  }
}

/** It may be the name of something else. */
async function orNull(finding: Promise<string>): Promise<string | null> {
  return await finding.catch((error: unknown) => {
    if (error instanceof CaissonError && (error.code === "not_found" || (error.code === "invalid" && !error.details?.candidates)))
      return null;
    throw error;
  });
}

/** Whether what is looked for was found. */
export async function isThere(finding: Promise<unknown>): Promise<boolean> {
  try {
    await finding;
    return true;
  } catch (error) {
    if (error instanceof CaissonError && (error.code === "not_found" || error.code === "invalid")) return false;
    throw error;
  }
}
