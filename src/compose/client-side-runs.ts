import { CaissonError } from "../contract/error/error.ts";
import { parseRequest } from "../contract/error/parse-request.ts";
import { type RunView, StartRun } from "../contract/run/run-verbs.ts";
import { defined } from "../lib/defined.ts";
import type { NumberedRunEvent, RunVerbs } from "../verbs/runs.ts";
import { type ClientSideOptions, notSent, secretsOfCaller } from "./caller.ts";
import { forwardGroup } from "./lazy-verbs.ts";

/**
 * Wraps the runs of a station for a local caller. If the station cannot drive a run, because something it needs is only
 * in the caller's environment, this process drives it, and from then on answers all calls about runs.
 */
export function clientSideRuns(remote: RunVerbs, options: ClientSideOptions): RunVerbs {
  const { caller, isElsewhere } = options;
  let own: RunVerbs | null = null;
  const notices = createNotices(caller.say);
  const current = () => own ?? remote;
  const driveHere = async () => {
    own = (await options.here()).station.runs;
    return own;
  };
  /** Uses the station. If it lacks the model's key, uses this process, whose environment may have the key. */
  const orHere = async <Result>(byStation: () => Promise<Result>, byUs: (runs: RunVerbs) => Promise<Result>): Promise<Result> => {
    try {
      return own === null ? await byStation() : await byUs(own);
    } catch (error) {
      const lacksKey = error instanceof CaissonError && error.code === "unauthenticated";
      if (isElsewhere || own !== null || !lacksKey) throw error;
      return await byUs(await driveHere());
    }
  };
  const listenedTo = async (going: Promise<RunView>): Promise<RunView> => {
    const view = await going;
    notices.listen(view.run, view.seq);
    return view;
  };
  return {
    ...forwardGroup("runs", current),
    async start(input, choices) {
      const request = parseRequest(StartRun, input, "a run");
      const { definitionToSend } = await import("./definition-to-send.ts");
      const definition = await definitionToSend(request, options);
      const { settings } = request;
      const requestedSecrets = { secrets: { ...definition?.sandbox.secrets, ...settings.secrets }, secretNames: settings.secretNames };
      const secrets = secretsOfCaller(requestedSecrets, options);
      if (secrets.length > 0) {
        if (isElsewhere) throw notSent(secrets);
        return (await driveHere()).start(input, choices);
      }
      const model = input.model ?? caller.config.models.default;
      const byStation = async () => {
        const view = await remote.start({ ...input, ...defined({ model, agent: definition ?? input.agent }) }, choices);
        notices.listen(view.run, 0);
        return view;
      };
      return await orHere(byStation, (runs) => runs.start(input, choices));
    },
    events: (run, query) => (own === null ? notices.report(run, remote.events(run, query)) : own.events(run, query)),
    resume: (run, request) =>
      orHere(
        () => listenedTo(remote.resume(run, request)),
        (runs) => runs.resume(run, request),
      ),
    continue: (run, request, choices) =>
      orHere(
        () => listenedTo(remote.continue(run, request, choices)),
        (runs) => runs.continue(run, request, choices),
      ),
    fork: (run, request, choices) =>
      orHere(
        async () => {
          const views = await remote.fork(run, request, choices);
          for (const view of views) notices.listen(view.run, view.seq);
          return views;
        },
        (runs) => runs.fork(run, request, choices),
      ),
  };
}

/** Reports the station's notices about runs started from here as if this process had issued them. */
function createNotices(say: (text: string) => void) {
  /** The last event reported for each run. */
  const lastSeqs = new Map<string, number>();
  return {
    listen: (run: string, afterSeq: number) => void lastSeqs.set(run, afterSeq),
    async *report(run: string, events: AsyncIterable<NumberedRunEvent>): AsyncGenerator<NumberedRunEvent, void, undefined> {
      for await (const event of events) {
        const last = lastSeqs.get(run);
        if (last !== undefined && event.seq > last) {
          lastSeqs.set(run, event.seq);
          if (event.type === "run.noticed") say(event.data.text);
        }
        yield event;
      }
    },
  };
}
