import { systemMessage } from "../../agent/journal.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { makeEvent } from "../../contract/event/event-family.ts";
import { type NewRunEvent, type RunForked, runEvents } from "../../contract/run/run-event.ts";
import type { Session } from "../../contract/session/session.ts";
import { LOCAL_OWNER } from "../../contract/token/owner.ts";
import type { Crashpoint } from "../../lib/crashpoint.ts";
import { ignore } from "../../lib/failures.ts";
import { newId } from "../../lib/new-id.ts";
import { createSession, type SessionCreation } from "../sessions/create-session.ts";
import { removeSession } from "../sessions/remove-session.ts";
import { storeStep } from "../sessions/stored-points.ts";
import { runStream } from "../vocabulary/station-names.ts";
import type { ForkFiles, ForkFilesOptions } from "./fork-files.ts";

export interface ForkCreation extends SessionCreation {
  crashpoint: Crashpoint;
  runtime: ForkFilesOptions["runtime"];
}

export interface NewFork {
  forked: Omit<(typeof RunForked)["shape"]["data"]["_output"], "session">;
  files: ForkFiles;
  cleanup: Session["cleanup"];
  /** The first message to the fork. */
  text?: string;
}

/**
 * Creates a run that begins with the events of another and with its files, in a new session. The fork waits until it is
 * continued. If this process dies on the way, nothing is left behind.
 */
export async function createFork({ forked, files, cleanup, text }: NewFork, options: ForkCreation): Promise<string> {
  const { run, from, owner = LOCAL_OWNER } = forked;
  const session = { ...files.session, id: run, scope: "run", cleanup, owner } as const;
  return await createSession(options, { session, note: run }, async (created) => {
    await files.fill(created);
    await files.check();
    await storeStart(created.id, { run, step: from.step }, options);
    const events: NewRunEvent[] = [
      { type: "run.forked", data: { ...forked, session: created.id } },
      systemMessage(
        `This is a fork of the run ${from.run} after its step ${from.step}: the conversation and the files are as they were then. The sandbox is new: programs that ran in the other one have ended, and /tmp is empty.`,
      ),
      ...(text === undefined ? [] : [userMessage(text)]),
    ];
    options.crashpoint("run.forked:before");
    await options.log.append(
      runStream(run),
      events.map((event) => makeEvent(runEvents, event)),
      { inherits: { stream: runStream(from.run), seq: from.seq }, expectedSeq: 0 },
    );
    options.crashpoint("run.forked:after");
    return run;
  });
}

/** Stores the files with which a fork begins, so that it can go back to them. */
async function storeStart(
  session: string,
  at: { run: string; step: number },
  { sessions, runtime: runtimeOf }: ForkCreation,
): Promise<void> {
  const created = await sessions.get(session);
  if (created.runtime === null) return;
  const runtime = await runtimeOf(created.runtime);
  await storeStep(created, { ...at, sandbox: null, unchanged: null }, { sessions, runtime });
}

function userMessage(text: string): NewRunEvent {
  return { type: "message.received", data: { message: newId("msg"), source: "user", mode: "steer", text } };
}

/** Removes a fork that has not worked yet, with its session. */
export async function removeFork(run: string, options: ForkCreation): Promise<void> {
  const { log, sessions } = options;
  await ignore(log.remove(runStream(run)), "it may not exist");
  const session = await sessions.get(run).catch((error: unknown) => {
    if (error instanceof CaissonError) return null;
    throw error;
  });
  if (session !== null) await removeSession(session, { sessions, runtimes: await options.runtimes(), force: false });
}
