import type { JobView } from "../../contract/durable/durable-job.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { parseRequest } from "../../contract/error/parse-request.ts";
import { ChosenName } from "../../contract/ids.ts";
import type { NewMergeEvent } from "../../contract/merge/merge-event.ts";
import { type MergeView, ResolveMerge, StartMerge } from "../../contract/merge/merge-verbs.ts";
import type { Session } from "../../contract/session/session.ts";
import { LOCAL_OWNER } from "../../contract/token/owner.ts";
import { defined } from "../../lib/defined.ts";
import type { MergeVerbs } from "../../verbs/merges.ts";
import type { Station } from "../../verbs/station.ts";
import type { SessionStore } from "../../workspace/sessions.ts";
import type { Jobs } from "../durable/durable-verbs.ts";
import type { ClaimName } from "../names/claim-name.ts";
import type { MergeState } from "./merge-state.ts";

export interface LocalMergesOptions {
  jobs: Jobs<MergeState, NewMergeEvent>;
  sessions: SessionStore;
  /** Looks up sessions and agents. */
  station: Pick<Station, "sessions" | "agents">;
  claimName: ClaimName;
}

export function createLocalMerges(options: LocalMergesOptions): MergeVerbs {
  const { jobs, sessions, station } = options;
  const viewAfter = async (job: Promise<JobView>) => await toMergeView((await job).id, jobs);
  return {
    list: jobs.list,
    events: jobs.events as MergeVerbs["events"],
    remove: jobs.remove,
    get: async (word) => await toMergeView(word, jobs),
    wait: (word, waitOptions) => viewAfter(jobs.wait(word, waitOptions)),
    cancel: (word, request) => viewAfter(jobs.cancel(word, request)),
    pause: (word, request) => viewAfter(jobs.pause(word, request)),
    resume: (word, request) => viewAfter(jobs.resume(word, request)),
    async start(input, { owner = LOCAL_OWNER, id, parent } = {}) {
      const { conflicts, agent, model, name, ...request } = parseRequest(StartMerge, input, "a merge");
      const found: Session[] = [];
      for (const word of request.sessions) found.push(await sessions.get((await station.sessions.get(word)).id));
      refuseTwice(found);
      refuseOtherBase(found);
      for (const session of found) await sessions.checkFree(session.id);
      if (conflicts === "agent") await station.agents.show(agent);
      if (name !== undefined)
        await (await options.claimName(parseRequest(ChosenName, name, "a session name"), { owner }))[Symbol.asyncDispose]();
      const ids = found.map((session) => session.id);
      const mergeId = await jobs.start({
        title: `merge of ${ids.join(", ")}`,
        owner,
        ...defined({ id, parent }),
        events: [{ type: "merge.begun", data: { sessions: ids, conflicts, agent, model: model ?? null, name: name ?? null } }],
      });
      return await toMergeView(mergeId, jobs);
    },
    async resolve(word, request, { by }) {
      const { take, agent } = parseRequest(ResolveMerge, request, "a resolution");
      const job = await jobs.say(word, ({ state, facts }) => {
        const { conflict, underWay } = state;
        if (facts.finish !== null || conflict === null || conflict.to !== "person" || conflict.candidate === null || underWay !== null)
          throw new CaissonError("conflict", `the merge ${facts.id} is not waiting for a resolution`, {
            hint: `Run \`caisson merge show ${facts.id}\` to see its state.`,
          });
        for (const { path } of take)
          if (!conflict.files.some((file) => file.path === path))
            throw new CaissonError("invalid", `${JSON.stringify(path)} is not in conflict`, {
              hint: `Files in conflict: ${conflict.files
                .slice(0, 5)
                .map((file) => JSON.stringify(file.path))
                .join(", ")}.`,
            });
        return [{ type: "merge.answered", data: { by, take, agent } }];
      });
      jobs.drive(job.id);
      return await toMergeView(job.id, jobs);
    },
  };
}

async function toMergeView(word: string, jobs: LocalMergesOptions["jobs"]): Promise<MergeView> {
  const view: JobView = await jobs.get(word);
  const { state } = await jobs.fold(view.id);
  const { conflict } = state;
  return {
    ...view,
    sessions: [...state.sessions],
    conflicts: state.conflicts,
    order: state.order === null ? null : [...state.order],
    merged: [...state.merged],
    conflict:
      conflict === null
        ? null
        : {
            with: conflict.with,
            files: [...conflict.files],
            session: conflict.candidate,
            run: conflict.run,
            attempt: conflict.attempt,
            why: conflict.why,
          },
    result: state.result,
  };
}

function refuseTwice(found: readonly Session[]): void {
  const twice = found.find(({ id }, index) => found.findIndex((other) => other.id === id) !== index);
  if (twice !== undefined) throw new CaissonError("invalid", `the session ${twice.id} was named twice`);
}

/** Throws `invalid` for sessions without a common base, because their changes cannot be compared. */
function refuseOtherBase([first, ...others]: readonly Session[]): void {
  if (first === undefined) return;
  const other = others.find((session) => baseOf(session) !== baseOf(first));
  if (other === undefined && baseOf(first) !== null) return;
  const culprit = other ?? first;
  throw new CaissonError(
    "invalid",
    other ? `the sessions ${first.id} and ${culprit.id} did not start from the same place` : `the session ${culprit.id} has no files yet`,
    {
      hint: "Choose sessions that work on the same folder, or on the same commit of the same repository.",
      details: { sessions: [first.id, culprit.id] },
    },
  );
}

function baseOf({ source, commit }: Session): string | null {
  switch (source.kind) {
    case "folder":
      return `folder ${source.path}`;
    case "git":
      return commit === null ? null : `git ${commit} ${source.url}`;
    case "upload":
      return `upload ${source.upload}`;
    case "empty":
      return "empty";
  }
}
