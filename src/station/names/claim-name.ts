import { CaissonError } from "../../contract/error.ts";
import { LOCAL_OWNER } from "../../contract/owner.ts";
import { holdLease } from "../../log/hold-lease.ts";
import type { Log } from "../../log/log.ts";
import type { Store } from "../../sandbox/store.ts";
import type { SessionStore } from "../../workspace/sessions.ts";
import { runsNamed } from "./find-run.ts";
import { sandboxesNamed } from "./find-sandbox.ts";
import { sessionIdOf } from "./session-id.ts";

/** As long as the slowest sandbox may take to be made; renewed until then. */
const CLAIM_MS = 30_000;

export interface ClaimOptions {
  log: Log;
  store: Store;
  sessions: Pick<SessionStore, "has">;
  /** This process, as the holder of a lease. */
  holder: string;
  ownerGone: (owner: string) => boolean;
}

export interface Claimed {
  /** Whose it is to be; names are an owner's own. */
  owner: string;
  /** Of a run that has its session's name. */
  ownSession?: string;
}

export type ClaimName = (name: string, claimed: Claimed) => Promise<AsyncDisposable>;

/**
 * Nobody else can give this name away until it is let go of: by then what it is for has it. Throws `exists` when a
 * sandbox, a session (but for `ownSession`) or a run that is not over of the same owner has it, `conflict` while
 * another process gives it away.
 */
export async function claimName(name: string, options: ClaimOptions & Claimed): Promise<AsyncDisposable> {
  const { log, holder, ownerGone, owner } = options;
  const stream = owner === LOCAL_OWNER ? `name/${name}` : `name/${owner}/${name}`;
  const held = await holdLease(log, stream, { owner: holder, ownerGone, ttlMs: CLAIM_MS });
  if (held === null) throw new CaissonError("conflict", `the name ${name} is being given away by another process`);
  try {
    await refuseTaken(name, options);
    return held;
  } catch (error) {
    await held[Symbol.asyncDispose]();
    throw error;
  }
}

async function refuseTaken(name: string, { log, store, sessions, owner, ownSession }: ClaimOptions & Claimed): Promise<void> {
  const session = sessionIdOf(name, owner);
  const [[sandbox], [run], isSession] = await Promise.all([
    sandboxesNamed(name, store, { owner }),
    runsNamed(name, { log, open: true, owner }),
    session === ownSession ? false : sessions.has(session),
  ]);
  const taken = sandbox ? `the sandbox ${sandbox.id}` : run ? `the run ${run.id}` : isSession ? "a session" : null;
  if (taken === null) return;
  const hint = sandbox ? `\`caisson sandbox rm ${name}\` removes it.` : run ? `\`caisson stop ${name}\` ends it.` : undefined;
  throw new CaissonError("exists", `${taken} has the name ${name}`, { hint: `Choose another name. ${hint ?? ""}`.trim() });
}
