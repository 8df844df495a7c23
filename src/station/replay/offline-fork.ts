import { AgentDefinition } from "../../contract/agent/agent.ts";
import { CaissonError } from "../../contract/error/error.ts";
import type { Session } from "../../contract/session/session.ts";
import type { Crashpoint } from "../../lib/crashpoint.ts";
import { ignore } from "../../lib/failures.ts";
import { newId } from "../../lib/new-id.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import { restricted, type Sandbox } from "../../sandbox/sandbox.ts";
import { createRunSandbox, type RunSandboxOptions } from "../runs/run-sandbox.ts";
import { createSession, type SessionCreation } from "../sessions/create-session.ts";
import { type ForkOptions, type ForkSource, planFork } from "../sessions/fork-session.ts";
import { removeSession } from "../sessions/remove-session.ts";

const FORK_LABEL = "caisson.fork";

export interface OfflineForkOptions
  extends Omit<ForkOptions, "runtime">,
    SessionCreation,
    Pick<RunSandboxOptions, "removeRemains" | "places"> {
  runtime: (name: string | undefined, ociRuntime?: string) => Promise<Runtime>;
  crashpoint: Crashpoint;
}

export interface OfflineForkRequest {
  /** The files to copy. */
  from: ForkSource;
  /** The agent whose sandbox this is like. */
  definition: AgentDefinition;
  /** The run for which it works, which holds the copy. */
  run: string;
  /** The labels of its sandbox. */
  labels: Readonly<Record<string, string>>;
  /** Whether the copy stays. */
  keep: boolean;
  notice: (text: string) => void;
}

/** A sandbox on a copy of a session's files, in which no process of the agent is alive. */
export interface OfflineFork {
  session: string;
  sandbox(): Promise<Sandbox>;
  /** Ends the sandbox; the next one has its files, as at the turn of a run. */
  renew(): Promise<void>;
}

/**
 * Does some work in a sandbox without network and secrets, on a copy of a session's files. Removes the copy afterwards
 * unless `keep` is set; if this process dies, the next sweep removes it. Throws `unsupported` if the files were not
 * stored or the sandbox could write to folders of the user.
 */
export async function inOfflineFork<Result>(
  request: OfflineForkRequest,
  options: OfflineForkOptions,
  work: (place: OfflineFork) => Promise<Result>,
): Promise<Result> {
  const { from, run, keep } = request;
  const { sessions } = options;
  refuseSharedFolders(run, request.definition);
  const definition = offline(request.definition);
  const plan = await planFork(from, options);
  const { owner } = from.session;
  const created = { ...plan.session, owner, id: newId("ses"), scope: "session", cleanup: "never" } as const;
  return await createSession(options, { session: created, note: newId("fork") }, async (fork) => {
    await plan.fill(fork);
    const runtime = await options.runtime(from.session.runtime ?? definition.sandbox.runtime, definition.sandbox.ociRuntime);
    // Noted before the sandbox exists, so that a sweep looks for its remains there.
    await sessions.update(fork.id, { runtime: runtime.name });
    const result = await inSandbox({ ...request, definition, runtime, fork: await sessions.get(fork.id) }, options, work);
    if (!keep) {
      await removeSession(await sessions.get(fork.id), { sessions, runtimes: await options.runtimes(), force: true });
      await ignore(options.log.remove(`session/${fork.id}`), "the history of a session that is gone is harmless");
    }
    return result;
  });
}

async function inSandbox<Result>(
  { run, definition, runtime, fork, labels, notice }: OfflineForkRequest & { runtime: Runtime; fork: Session },
  options: OfflineForkOptions,
  work: (place: OfflineFork) => Promise<Result>,
): Promise<Result> {
  const { sessions } = options;
  await using _lock = await sessions.lock(fork.id, run);
  const onReady = async () => undefined;
  // A sandbox is found again by its labels, and two forks of one run may be at work.
  const own = { ...labels, [FORK_LABEL]: fork.id };
  const place = createRunSandbox({
    ...options,
    run,
    labels: own,
    runtime,
    definition,
    session: fork,
    notice,
    previous: () => null,
    onReady,
  });
  try {
    return await work({ session: fork.id, sandbox: async () => restricted(await place.get()), renew: () => place.end() });
  } finally {
    await place.end();
  }
}

/** The same sandbox without a way out: no network, no secrets, and no access to the station. */
function offline(definition: AgentDefinition): AgentDefinition {
  const { gateway: _, ...sandbox } = definition.sandbox;
  return AgentDefinition.parse({
    ...definition,
    sandbox: { ...sandbox, network: { mode: "none" }, secrets: {}, secretNames: [], stationAccess: false },
  });
}

function refuseSharedFolders(run: string, { sandbox: { mounts = [] } }: AgentDefinition): void {
  const shared = mounts.find(({ access }) => access === "rw");
  if (shared === undefined) return;
  throw new CaissonError(
    "unsupported",
    `nothing can run on a copy of the files of ${run}: it could write to ${shared.path}, which the run shares`,
    {
      hint: "Share the folder read-only or as an overlay.",
    },
  );
}
