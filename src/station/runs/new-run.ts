import type { Session } from "../../contract/session/session.ts";
import type { Crashpoint } from "../../lib/crashpoint.ts";
import type { NewSession } from "../../workspace/sessions.ts";
import { createSession, type SessionCreation } from "../sessions/create-session.ts";
import type { NewRun, Runs } from "./runs.ts";

/** Creates a session and a run in it. `fill` copies another session's files into it before the run exists. */
export async function createRunInNewSession(
  creation: SessionCreation & { runs: Runs; crashpoint: Crashpoint },
  request: { session: NewSession; run: Omit<NewRun, "session"> & { id: string }; fill?: (session: Session) => Promise<void> },
): Promise<string> {
  return await createSession(creation, { session: request.session, note: request.run.id }, async (session) => {
    await request.fill?.(session);
    return await creation.runs.create({ ...request.run, session: session.id });
  });
}
