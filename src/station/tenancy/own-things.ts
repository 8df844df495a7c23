import { CaissonError } from "../../contract/error/error.ts";
import { RunId, SandboxId, SessionId } from "../../contract/ids.ts";
import type { OwnerView } from "../../contract/token/owner.ts";
import { defined } from "../../lib/defined.ts";
import type { Station } from "../../verbs/station.ts";
import { noSuchRun, runAmong } from "../names/find-run.ts";
import { noSuchSandbox, sandboxAmong } from "../names/find-sandbox.ts";
import { CANDIDATES_MAX, oneOf } from "../names/one-of.ts";
import { isSessionId, sessionIdOf } from "../names/session-id.ts";
import type { OwnLookups } from "./owned-group.ts";

/**
 * Lookups of the things that a caller sees. Looking up any other thing fails as if it did not exist. `session` accepts
 * a session or a run in it, `work` a session, a run in it or a sandbox, `network` a sandbox or a run that has one.
 */
type OwnThings = Pick<OwnLookups, "run" | "sandbox" | "snapshot" | "session" | "work" | "network">;

type Parts = Pick<Station, "runs" | "sandboxes" | "sessions">;

export function ownThings(station: Parts, { owner, sees }: OwnerView): OwnThings {
  const own = strictlyOwn(station, owner);
  if (sees === "own") return own;
  // For a caller who sees everything, a name refers to their own thing of that name, or otherwise to any owner's.
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
    const candidates = async (query: { id?: string; name?: string; state?: "open" }) =>
      (await station.runs.list({ owner, limit: CANDIDATES_MAX, ...query })).runs.map((view) => ({ id: view.run, name: view.name }));
    return await runAmong(word, {
      beginning: (id) => candidates({ id }),
      named: (name, { open }) => candidates({ name, ...defined({ state: open ? ("open" as const) : undefined }) }),
    });
  };
  const sandbox = async (word: string): Promise<string> => {
    if (SandboxId.safeParse(word).success) return (await isOwnSandbox(word, { station, owner })) ? word : noSuchSandbox(word);
    const candidates = async (query: { name?: string }) => (await station.sandboxes.list({ sweep: false, owner, ...query })).sandboxes;
    return await sandboxAmong(word, { all: () => candidates({}), named: (name) => candidates({ name }) });
  };
  const sessionAlone = async (word: string): Promise<string | null> => {
    const id = sessionIdOf(word, owner);
    const { sessions } = await station.sessions.list({ id: [id], owner });
    return sessions.length > 0 ? id : null;
  };
  const session = async (word: string): Promise<string> => {
    if (word.startsWith("run_")) return await run(word);
    // The lookup rejects invalid session names.
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

/** Returns false for a sandbox with an unreadable record, whose owner is unknown. */
async function isOwnSandbox(id: string, { station, owner }: { station: Parts; owner: string }): Promise<boolean> {
  try {
    return (await station.sandboxes.get(id)).owner === owner;
  } catch (error) {
    if (error instanceof CaissonError && (error.code === "internal" || error.code === "not_found")) return false;
    throw error;
  }
}

/** Returns null if nothing is found: the word may name another kind of thing. */
async function orNull(finding: Promise<string>): Promise<string | null> {
  return await finding.catch((error: unknown) => {
    if (error instanceof CaissonError && (error.code === "not_found" || (error.code === "invalid" && !error.details?.candidates)))
      return null;
    throw error;
  });
}

/** Returns whether a lookup succeeds. */
export async function isThere(finding: Promise<unknown>): Promise<boolean> {
  try {
    await finding;
    return true;
  } catch (error) {
    if (error instanceof CaissonError && (error.code === "not_found" || error.code === "invalid")) return false;
    throw error;
  }
}
