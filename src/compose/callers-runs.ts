import { CaissonError } from "../contract/error.ts";
import { parseRequest } from "../contract/parse-request.ts";
import { type RunView, StartRun } from "../contract/run-verbs.ts";
import { defined } from "../lib/defined.ts";
import type { NumberedRunEvent, RunVerbs } from "../station/runs/verbs.ts";
import { type CallersOptions, notSent, secretsOfCaller } from "./caller.ts";

/**
 * Runs that a station drives for somebody who stands here. One that it cannot drive, because what it needs is in the
 * caller's environment alone, is driven by this process; from then on this process is asked about all of them.
 */
export function callersRuns(remote: RunVerbs, options: CallersOptions): RunVerbs {
  const { caller, isElsewhere } = options;
  let own: RunVerbs | null = null;
  const notices = createNotices(caller.say);
  const current = () => own ?? remote;
  const driveHere = async () => {
    own = (await options.here()).station.runs;
    return own;
  };
  /** The station's, or this process's where the station has no key of the model: it may be in this environment. */
  const orHere = async (byStation: () => Promise<RunView>, byUs: (runs: RunVerbs) => Promise<RunView>): Promise<RunView> => {
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
    async start(given, choices) {
      const request = parseRequest(StartRun, given, "a run");
      const { definitionToSend } = await import("./definition-to-send.ts");
      const definition = await definitionToSend(request, options);
      const { settings } = request;
      const asked = { secrets: { ...definition?.sandbox.secrets, ...settings.secrets }, secretNames: settings.secretNames };
      const secrets = secretsOfCaller(asked, options);
      if (secrets.length > 0) {
        if (isElsewhere) throw notSent(secrets);
        return (await driveHere()).start(given, choices);
      }
      const model = given.model ?? caller.config.models.default;
      const byStation = async () => {
        const view = await remote.start({ ...given, ...defined({ model, agent: definition ?? given.agent }) }, choices);
        notices.listen(view.run, 0);
        return view;
      };
      return await orHere(byStation, (runs) => runs.start(given, choices));
    },
    get: (run) => current().get(run),
    list: (asked) => current().list(asked),
    events: (run, asked) => (own === null ? notices.said(run, remote.events(run, asked)) : own.events(run, asked)),
    allEvents: (asked) => current().allEvents(asked),
    lastPosition: () => current().lastPosition(),
    wait: (run, asked) => current().wait(run, asked),
    send: (run, message) => current().send(run, message),
    answer: (run, answer) => current().answer(run, answer),
    pause: (run, asked) => current().pause(run, asked),
    resume: (run, asked) =>
      orHere(
        () => listenedTo(remote.resume(run, asked)),
        (runs) => runs.resume(run, asked),
      ),
    continue: (run, request, asked) =>
      orHere(
        () => listenedTo(remote.continue(run, request, asked)),
        (runs) => runs.continue(run, request, asked),
      ),
    prioritize: (run, asked) => current().prioritize(run, asked),
    label: (run, changes, asked) => current().label(run, changes, asked),
    adopt: (run, asked) => current().adopt(run, asked),
    queue: () => current().queue(),
    stop: (run, asked) => current().stop(run, asked),
    remove: (run) => current().remove(run),
    check: () => current().check(),
  };
}

/** What a station has to say of the runs that were started through it from here, as this process would have said it. */
function createNotices(say: (text: string) => void) {
  /** For each run the last event that was listened to. */
  const heard = new Map<string, number>();
  return {
    listen: (run: string, afterSeq: number) => void heard.set(run, afterSeq),
    async *said(run: string, events: AsyncIterable<NumberedRunEvent>): AsyncGenerator<NumberedRunEvent, void, undefined> {
      for await (const event of events) {
        const last = heard.get(run);
        if (last !== undefined && event.seq > last) {
          heard.set(run, event.seq);
          if (event.type === "run.noticed") say(event.data.text);
        }
        yield event;
      }
    },
  };
}
