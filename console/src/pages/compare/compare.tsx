import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "wouter";
import type { RunView } from "../../../../src/contract/run/run-verbs.ts";
import { useRun } from "../../data/queries.ts";
import { useStation } from "../../data/station.tsx";
import { Empty } from "../../parts/empty.tsx";
import { Loading } from "../../parts/loading.tsx";
import { NameLine } from "../../parts/name-line.tsx";
import { Page } from "../../parts/page.tsx";
import { Problem } from "../../parts/problem.tsx";
import { Scroll } from "../../parts/scroll.tsx";
import { visibleText } from "../../parts/visible-text.ts";
import styles from "./compare.module.css";
import { ComparedChanges } from "./compared-changes.tsx";
import { comparedFiles, countLines } from "./compared-files.ts";
import { RunFacts } from "./run-facts.tsx";

/** Compares two runs side by side: what they cost, how they ended, and what they changed. */
export default function Compare() {
  const { one = "", other = "" } = useParams<{ one: string; other: string }>();
  return <ComparePage key={`${one} ${other}`} one={one} other={other} />;
}

function ComparePage({ one, other }: { one: string; other: string }) {
  const [left, right] = [useRun(one), useRun(other)];
  const error = left.error ?? right.error;
  const retry = () => {
    void left.refetch();
    void right.refetch();
  };
  return (
    <Page
      title="Compare two runs"
      name={
        <NameLine up={{ href: left.data === undefined ? "/runs" : `/runs/${left.data.run}?tab=forks`, label: "Forks" }} name="Compare" />
      }
    >
      {error !== null && <Problem error={error} onRetry={retry} />}
      {error === null && (left.data === undefined || right.data === undefined) && <Loading rows={8} />}
      {left.data !== undefined && right.data !== undefined && <Compared views={[left.data, right.data]} />}
    </Page>
  );
}

/** The name of a run in this comparison. */
export const runName = ({ run, name }: Pick<RunView, "run" | "name">): string => visibleText(name ?? run);

function useDiff(view: RunView) {
  const station = useStation();
  return useQuery({
    queryKey: ["session-diff", view.session, "compare", view.seq],
    queryFn: ({ signal }) => station.sessions.diff(view.session, {}, { signal }),
    retry: false,
    placeholderData: (before) => before,
  });
}

function Compared({ views }: { views: readonly [RunView, RunView] }) {
  const [left, right] = [useDiff(views[0]), useDiff(views[1])];
  const diffs = left.data === undefined || right.data === undefined ? null : ([left.data, right.data] as const);
  const ignored = diffs?.some((diff) => diff.ignored > 0) ?? false;
  return (
    <Scroll className={styles.page} label="Comparison">
      <RunFacts views={views} counts={[left.data, right.data].map((diff) => (diff === undefined ? null : countLines(diff.files)))} />
      {[left, right].map(
        ({ error, refetch }, index) =>
          error !== null && (
            // biome-ignore lint/suspicious/noArrayIndexKey: one of each side.
            <div key={index}>
              <p className={styles.note}>
                The changes of{" "}
                <Link href={`/runs/${views[index]?.run}`} className="link">
                  {runName(views[index] ?? views[0])}
                </Link>{" "}
                cannot be read:
              </p>
              <Problem error={error} onRetry={() => void refetch()} />
            </div>
          ),
      )}
      {diffs === null && left.error === null && right.error === null && <Loading rows={6} />}
      {diffs !== null && diffs[0].files.length + diffs[1].files.length === 0 && <Empty title="Neither run changed a file" />}
      {diffs !== null && diffs[0].files.length + diffs[1].files.length > 0 && (
        <ComparedChanges views={views} files={comparedFiles(diffs[0].files, diffs[1].files)} />
      )}
      {ignored && <p className={styles.note}>New files that .gitignore names are left out.</p>}
    </Scroll>
  );
}
