import { CaissonError } from "../../contract/error.ts";
import { holdLease } from "../../log/hold-lease.ts";
import type { Log } from "../../log/log.ts";
import type { Store } from "../../sandbox/store.ts";
import type { SessionStore } from "../../workspace/sessions.ts";
import { runsNamed } from "./find-run.ts";
import { sandboxesNamed } from "./find-sandbox.ts";

/** As long as the slowest sandbox may take to be made; renewed until then. */
const CLAIM_MS = 30_000;

export interface ClaimOptions {
  log: Log;
  store: Store;
  sessions: Pick<SessionStore, "has">;
  /** This process, as the holder of a lease. */
  owner: string;
  ownerGone: (owner: string) => boolean;
}

export type ClaimName = (name: string, claimed?: { ownSession?: string }) => Promise<AsyncDisposable>;

/**
 * Nobody else can give this name away until it is let go of: by then what it is for has it. Throws `exists` when a
 * sandbox, a session (but for `ownSession`, of a run that has its session's name) or a run that is not over has it,
 * `conflict` while another process gives it away.
 */
export async function claimName(name: string, options: ClaimOptions & { ownSession?: string }): Promise<AsyncDisposable> {
  const { log, owner, ownerGone } = options;
  const held = await holdLease(log, `name/${name}`, { owner, ownerGone, ttlMs: CLAIM_MS });
  if (held === null) throw new CaissonError("conflict", `the name ${name} is being given away by another process`);
  try {
    await refuseTaken(name, options);
    return held;
  } catch (error) {
    await held[Symbol.asyncDispose]();
    throw error;
  }
}

async function refuseTaken(name: string, { log, store, sessions, ownSession }: ClaimOptions & { ownSession?: string }): Promise<void> {
  const [[sandbox], [run], isSession] = await Promise.all([
    sandboxesNamed(name, store),
    runsNamed(name, { log, open: true }),
    name === ownSession ? false : sessions.has(name),
  ]);
  const taken = sandbox ? `the sandbox ${sandbox.id}` : run ? `the run ${run.id}` : isSession ? "a session" : null;
  if (taken === null) return;
  const hint = sandbox ? `\`caisson sandbox rm ${name}\` removes it.` : run ? `\`caisson stop ${name}\` ends it.` : undefined;
  throw new CaissonError("exists", `${taken} has the name ${name}`, { hint: `Choose another name. ${hint ?? ""}`.trim() });
}
