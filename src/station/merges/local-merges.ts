import type { DrivenView } from "../../contract/driven.ts";
import { CaissonError } from "../../contract/error.ts";
import { ChosenName } from "../../contract/ids.ts";
import type { NewMergeEvent } from "../../contract/merge-event.ts";
import { type MergeView, ResolveMerge, StartMerge } from "../../contract/merge-verbs.ts";
import { LOCAL_OWNER } from "../../contract/owner.ts";
import { parseRequest } from "../../contract/parse-request.ts";
import type { Session } from "../../contract/session.ts";
import { defined } from "../../lib/defined.ts";
import type { SessionStore } from "../../workspace/sessions.ts";
import type { DrivenThings } from "../driven/driven-verbs.ts";
import type { ClaimName } from "../names/claim-name.ts";
import type { Station } from "../station.ts";
import type { MergeState } from "./merge-state.ts";
import type { MergeVerbs } from "./verbs.ts";

export interface LocalMergesOptions {
  things: DrivenThings<MergeState, NewMergeEvent>;
  sessions: SessionStore;
  /** By which words stand for sessions. */
  station: Pick<Station, "sessions" | "agents">;
  claimName: ClaimName;
}

export function createLocalMerges(options: LocalMergesOptions): MergeVerbs {
  const { things, sessions, station } = options;
  const seen = async (told: Promise<DrivenView>) => await shown((await told).id, things);
  return {
    list: things.list,
    events: things.events,
    remove: things.remove,
    get: async (word) => await shown(word, things),
    wait: (word, asked) => seen(things.wait(word, asked)),
    cancel: (word, asked) => seen(things.cancel(word, asked)),
    pause: (word, asked) => seen(things.pause(word, asked)),
    resume: (word, asked) => seen(things.resume(word, asked)),
    async start(given, { owner = LOCAL_OWNER, id, parent } = {}) {
      const { conflicts, agent, model, name, ...request } = parseRequest(StartMerge, given, "a merge");
      const found: Session[] = [];
      for (const word of request.sessions) found.push(await sessions.get((await station.sessions.get(word)).id));
      refuseTwice(found);
      refuseOtherBase(found);
      for (const session of found) await sessions.checkFree(session.id);
      if (conflicts === "agent") await station.agents.show(agent);
      if (name !== undefined)
        await (await options.claimName(parseRequest(ChosenName, name, "a session's name"), { owner }))[Symbol.asyncDispose]();
      const ids = found.map((session) => session.id);
      const made = await things.start({
        title: `merge of ${ids.join(", ")}`,
        owner,
        ...defined({ id, parent }),
        events: [{ type: "merge.begun", data: { sessions: ids, conflicts, agent, model: model ?? null, name: name ?? null } }],
      });
      return await shown(made, things);
    },
    async resolve(word, request, { by }) {
      const { take, agent } = parseRequest(ResolveMerge, request, "a resolution");
      const told = await things.say(word, ({ state, facts }) => {
        const { conflict, underWay } = state;
        if (facts.finish !== null || conflict === null || conflict.to !== "person" || conflict.candidate === null || underWay !== null)
          throw new CaissonError("conflict", `the merge ${facts.id} waits for nobody's resolution`, {
            hint: `\`caisson merge show ${facts.id}\` tells what it does.`,
          });
        for (const { path } of take)
          if (!conflict.files.some((file) => file.path === path))
            throw new CaissonError("invalid", `${JSON.stringify(path)} is not in conflict`, {
              hint: `In conflict are ${conflict.files
                .slice(0, 5)
                .map((file) => JSON.stringify(file.path))
                .join(", ")}.`,
            });
        return [{ type: "merge.answered", data: { by, take, agent } }];
      });
      things.drive(told.id);
      return await shown(told.id, things);
    },
  };
}

async function shown(word: string, things: LocalMergesOptions["things"]): Promise<MergeView> {
  const view: DrivenView = await things.get(word);
  const { state } = await things.fold(view.id);
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

/** Throws `invalid` for sessions that have nothing in common that their changes could be compared with. */
function refuseOtherBase([first, ...others]: readonly Session[]): void {
  if (first === undefined) return;
  const other = others.find((session) => baseOf(session) !== baseOf(first));
  if (other === undefined && baseOf(first) !== null) return;
  const told = other ?? first;
  throw new CaissonError(
    "invalid",
    other ? `the sessions ${first.id} and ${told.id} did not begin at the same place` : `the session ${told.id} has no files yet`,
    {
      hint: "Sessions are merged that work on the same folder, or on the same commit of the same repository.",
      details: { sessions: [first.id, told.id] },
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
