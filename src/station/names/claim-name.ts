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

/**
 * Nobody else can give this name away until it is let go of: by then what it is for has it. Throws `exists` when a
 * sandbox, a session or a run that is not over has it, `conflict` while another process gives it away.
 */
export async function claimName(name: string, options: ClaimOptions): Promise<AsyncDisposable> {
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

async function refuseTaken(name: string, { log, store, sessions }: ClaimOptions): Promise<void> {
  const [[sandbox], [run], isSession] = await Promise.all([
    sandboxesNamed(name, store),
    runsNamed(name, { log, open: true }),
    sessions.has(name),
  ]);
  const taken = sandbox ? `the sandbox ${sandbox.id}` : run ? `the run ${run.id}` : isSession ? "a session" : null;
  if (taken === null) return;
  const hint = sandbox ? `\`caisson sandbox rm ${name}\` removes it.` : run ? `\`caisson stop ${name}\` ends it.` : undefined;
  throw new CaissonError("exists", `${taken} has the name ${name}`, { hint: `Choose another name. ${hint ?? ""}`.trim() });
}
