import type { RunFacts } from "../../contract/run/run-facts.ts";
import type { RunTimeline, TimelineFork, TimelineRelative } from "../../contract/run/run-timeline.ts";
import type { Log } from "../../log/log.ts";
import { toRunHead } from "../vocabulary/head-of-run.ts";
import { runStream } from "../vocabulary/station-names.ts";

const FORKS_MAX = 10_000;

export const originOf = ({ forked }: Pick<RunFacts, "forked">) => (forked === null ? null : { run: forked.run, step: forked.step });

/** Returns the forks of a run, the forks of these, and the other runs that share a beginning with it, oldest first. */
export async function familyOf(facts: RunFacts, log: Log): Promise<Pick<RunTimeline, "forks" | "relatives">> {
  const isFork = (head: unknown) => (head as Partial<RunFacts> | null)?.forked != null;
  const { heads } = await log.heads({ prefix: runStream(""), matches: isFork, limit: FORKS_MAX });
  const forks = heads.map((head) => toRunHead(head).facts);
  const byParent = Map.groupBy(forks, ({ forked }) => forked?.run);
  const oldest = await oldestOf(facts, { forks: new Map(forks.map((each) => [each.run, each])), log });
  const own = descendantsOf(facts.run, byParent);
  const isOwn = new Set([facts.run, ...own.map(({ run }) => run)]);
  const family = oldest.run === facts.run ? [] : [oldest, ...descendantsOf(oldest.run, byParent)];
  return {
    forks: own.flatMap((fork): TimelineFork[] => {
      const { from, ...relative } = relativeOf(fork);
      return from === null ? [] : [{ ...relative, from }];
    }),
    relatives: family.filter(({ run }) => !isOwn.has(run)).map(relativeOf),
  };
}

/** Returns the run that a fork comes from, as far back as the runs in between exist. */
async function oldestOf(facts: RunFacts, { forks, log }: { forks: ReadonlyMap<string, RunFacts>; log: Log }): Promise<RunFacts> {
  let oldest = facts;
  const seen = new Set<string>();
  while (oldest.forked !== null && !seen.has(oldest.run)) {
    seen.add(oldest.run);
    const { run } = oldest.forked;
    const known = forks.get(run);
    const head = known === undefined ? await log.head(runStream(run)) : null;
    if (known === undefined && head === null) return oldest;
    oldest = known ?? (head === null ? oldest : toRunHead(head).facts);
  }
  return oldest;
}

function descendantsOf(run: string, byParent: ReadonlyMap<string | undefined, RunFacts[]>): RunFacts[] {
  const found: RunFacts[] = [];
  const seen = new Set([run]);
  for (const parents = [run]; parents.length > 0; ) {
    for (const facts of byParent.get(parents.pop()) ?? []) {
      if (seen.has(facts.run)) continue;
      seen.add(facts.run);
      parents.push(facts.run);
      found.push(facts);
    }
  }
  return found.sort((a, b) => a.createdAt.localeCompare(b.createdAt));
}

function relativeOf(facts: RunFacts): TimelineRelative {
  const { run, name, model, status, finish, step: steps, costUsd, forked, createdAt } = facts;
  return { run, name, from: originOf(facts), isTail: forked?.isTail ?? false, model, status, finish, steps, costUsd, createdAt };
}
