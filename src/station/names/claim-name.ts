import { CaissonError } from "../../contract/error/error.ts";
import { LOCAL_OWNER } from "../../contract/token/owner.ts";
import { holdLease } from "../../log/hold-lease.ts";
import type { Log } from "../../log/log.ts";
import type { Store } from "../../sandbox/store.ts";
import type { SessionStore } from "../../workspace/sessions.ts";
import { runsNamed } from "./find-run.ts";
import { sandboxesNamed } from "./find-sandbox.ts";
import { sessionIdOf } from "./session-id.ts";

/** The lease of a claim, which is renewed while the slowest sandbox is created. */
const CLAIM_MS = 30_000;

export interface ClaimOptions {
  log: Log;
  store: Store;
  sessions: Pick<SessionStore, "has">;
  /** This process, as the holder of a lease. */
  holder: string;
  holderGone: (holder: string) => boolean;
}

export interface Claimed {
  /** The future owner of the name. Names are unique per owner. */
  owner: string;
  /** The session of the claiming run, which may already have the name. */
  ownSession?: string;
}

export type ClaimName = (name: string, claimed: Claimed) => Promise<AsyncDisposable>;

/**
 * Claims a name: until the claim is released, no other process can assign it. Release the claim once the new holder has
 * the name. Throws `exists` if a sandbox, a session (except `ownSession`) or an open run of the same owner has the
 * name, `conflict` while another process claims it.
 */
export async function claimName(name: string, options: ClaimOptions & Claimed): Promise<AsyncDisposable> {
  const { log, holder, holderGone, owner } = options;
  const stream = owner === LOCAL_OWNER ? `name/${name}` : `name/${owner}/${name}`;
  const held = await holdLease(log, stream, { holder, holderGone, ttlMs: CLAIM_MS });
  if (held === null) throw new CaissonError("conflict", `another process is claiming the name ${name}`);
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
  const nameHolder = sandbox ? `the sandbox ${sandbox.id}` : run ? `the run ${run.id}` : isSession ? "a session" : null;
  if (nameHolder === null) return;
  const hint = sandbox ? `, or remove it with \`caisson sandbox rm ${name}\`` : run ? `, or stop it with \`caisson stop ${name}\`` : "";
  throw new CaissonError("exists", `${nameHolder} already has the name ${name}`, { hint: `Choose another name${hint}.` });
}
