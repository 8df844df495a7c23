import { CaissonError } from "../../contract/error/error.ts";
import { EFFECT_LABEL, JOB_LABEL } from "../../contract/label/station-labels.ts";
import { defined } from "../../lib/defined.ts";
import { WORKSPACE } from "../../sandbox/path.ts";
import type { Station } from "../../verbs/station.ts";
import type { Changes } from "../../workspace/change.ts";
import { sessionIdOf } from "../names/session-id.ts";
import { writeSession } from "../sessions/write-session.ts";
import { checkResolution } from "./check-resolution.ts";
import { conflictsIn, layOut, SIDES_FOLDER, sideFile, sideOfMarked, takeSide } from "./conflict-files.ts";
import { baseFiles, changedFiles, digestOf } from "./file-tree.ts";
import { type GitInside, openGit, sideName } from "./git-inside.ts";
import { type CopiesOptions, changedSince, createCopies } from "./merge-copies.ts";
import { type MergeContext, type MergeWork, sessionFor } from "./merge-kind.ts";
import { mergeKindFacts } from "./merge-kind-facts.ts";
import { resolveTask } from "./merge-task.ts";
import { planMerge } from "./plan-merge.ts";

const START = "start";

/** Merges the files of sessions: git does the work inside a sandbox, on copies of them. */
export function mergeSessions(options: CopiesOptions): MergeWork {
  const { sessions, station } = options;
  const { get, changes, pinned, remove, copy } = createCopies(options);
  return {
    async plan({ sessions: ids }) {
      const all: Changes[] = [];
      for (const id of ids) all.push(await changes(id));
      const digests = Object.fromEntries(ids.map((id, index) => [id, digestOf(all[index]?.changes ?? [])]));
      const scratch = await get(ids[0] ?? "");
      const runtime = await options.runtime(scratch.runtime ?? undefined);
      return { ...(await planMerge(ids, all, runtime)), digests };
    },
    async step(state, id, { owner, signal }) {
      const remaining = (state.order ?? []).filter((each) => !state.merged.includes(each));
      const theirs = await pinned(remaining, state.digests);
      // An incomplete copy is created again.
      await remove(id);
      const work = await copy(state.head ?? "", id, { owner });
      const ours = await changes(id);
      if (state.step === 1 && digestOf(ours.changes) !== state.digests[state.head ?? ""]) throw changedSince(state.head ?? "");
      signal.throwIfAborted();
      return await writeSession(work, options, async (sandbox) => {
        const git = await openGit(sandbox);
        const sides = Object.fromEntries(theirs.map((side, index) => [sideName(index), changedFiles(side)]));
        await git.load(baseFiles([ours, ...theirs]), { [START]: changedFiles(ours), ...sides });
        return await mergeOn(git, remaining, {
          async write(from, to) {
            await git.checkOut(from, to);
          },
          layOut: async (files, conflicted) => await layOut(sandbox, files, { git, conflicted }),
        });
      });
    },
    async offer(state, conflict, { id, owner, session, effect }) {
      await copy(conflict.session, session, { owner });
      if (conflict.to === "person") return { run: null };
      const labels = { [JOB_LABEL]: `${mergeKindFacts.prefix}${id}`, [EFFECT_LABEL]: effect };
      const filters = Object.entries(labels).map(([key, value]) => `${key}=${value}`);
      const [known] = (await station.runs.list({ owner, label: filters, limit: 1 })).runs;
      if (known !== undefined) return { run: known.run };
      const task = resolveTask(conflict.files, { tasks: await tasksOf([...state.merged, conflict.with], station), why: conflict.why });
      const request = { agent: state.agent, task, session: { id: session }, labels, ...defined({ model: state.model ?? undefined }) };
      return { run: (await station.runs.start(request, { owner })).run };
    },
    async check(_state, conflict) {
      const candidate = await get(conflict.candidate ?? "");
      const conflicted = changedFiles(await changes(conflict.session));
      if (conflict.take.length > 0) {
        await writeSession(candidate, options, async (sandbox) => {
          for (const { path, side } of conflict.take) {
            const index = conflict.files.findIndex((file) => file.path === path);
            const file = conflict.files[index];
            const isMarked = file?.kind === "content" || file?.kind === "added_twice";
            const found = conflicted.get(isMarked ? path : sideFile(index, side))?.content ?? Buffer.alloc(0);
            await takeSide(sandbox, { path, mode: file?.sides[side] ?? null, content: isMarked ? sideOfMarked(found, side) : found });
          }
        });
      }
      const why = checkResolution(conflict.files, conflicted, changedFiles(await changes(candidate.id)));
      if (why === null) {
        await writeSession(candidate, options, async (sandbox) => {
          await sandbox.remove(`${WORKSPACE}/${SIDES_FOLDER}`, { recursive: true }).catch(ifAbsent);
        });
      }
      return why;
    },
    async publish(state, { id, owner }: MergeContext) {
      const result = state.name === null ? sessionFor(id, "result") : sessionIdOf(state.name, owner);
      await copy(state.head ?? "", result, { owner, ...defined({ name: state.name ?? undefined }) });
      await sessions.record(result, { type: "session.merged", data: { merge: id, sessions: [...(state.order ?? [])] } }, { once: true });
      return result;
    },
    async cleanUp(ids) {
      const left: string[] = [];
      for (const id of ids) await remove(id).catch(() => left.push(id));
      return left;
    },
  };
}

/** Merges one side after the other, until all are merged or one has a conflict. */
async function mergeOn(
  git: GitInside,
  remaining: readonly string[],
  to: {
    write: (from: string, to: string) => Promise<void>;
    layOut: (
      files: Awaited<ReturnType<typeof conflictsIn>>,
      conflicted: Awaited<ReturnType<GitInside["merge"]>>["conflicted"],
    ) => Promise<void>;
  },
) {
  const start = await git.commitOf(START);
  let current = start;
  const merged: string[] = [];
  for (const [index, session] of remaining.entries()) {
    const tree = await git.merge(current, sideName(index));
    if (tree.conflicted.size > 0) {
      const files = await conflictsIn(git, tree);
      await to.write(start, tree.commit);
      await to.layOut(files, tree.conflicted);
      return { merged, conflict: { with: session, files } };
    }
    current = tree.commit;
    merged.push(session);
  }
  await to.write(start, current);
  return { merged, conflict: null };
}

/** Returns the tasks of their runs, for the agent that merges. */
async function tasksOf(ids: readonly string[], { runs }: Pick<Station, "runs">): Promise<string[]> {
  const views = await Promise.all(ids.map(async (session) => (await runs.list({ session, parent: null, limit: 3 })).runs));
  return [...new Set(views.flat().map(({ title }) => title.slice(0, 500)))];
}

function ifAbsent(error: unknown): void {
  if (!(error instanceof CaissonError) || error.code !== "not_found") throw error;
}
