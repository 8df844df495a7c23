import { useQuery } from "@tanstack/react-query";
import type { TimelineStep } from "../../../../../src/contract/run/run-timeline.ts";
import type { RunView } from "../../../../../src/contract/run/run-verbs.ts";
import type { ChangedFile, SessionDiff } from "../../../../../src/contract/session/session-verbs.ts";
import { useStation } from "../../../data/station.tsx";
import { plural } from "../../../parts/amounts.ts";
import { Empty } from "../../../parts/empty.tsx";
import { useFilterParams } from "../../../parts/filter-params.ts";
import { Loading } from "../../../parts/loading.tsx";
import { Problem } from "../../../parts/problem.tsx";
import { visibleText } from "../../../parts/visible-text.ts";
import { FileButton } from "../changes/file-button.tsx";
import { readSides } from "../changes/read-changes.ts";
import { SidesView } from "../changes/sides-view.tsx";
import { pointWords } from "../points/use-points.ts";
import styles from "./steps.module.css";

interface StepChangesProps {
  view: RunView;
  steps: readonly TimelineStep[];
  step: number;
  base: number | null;
  onBase(base: number): void;
}

/** The changes that led to a step, or why they cannot be shown. */
export function StepChanges({ isStored, ...props }: StepChangesProps & { isStored: boolean }) {
  const { steps, step } = props;
  if (step === 0) return <p className={styles.note}>The conversation and the files are those that the run began with.</p>;
  if (isStored) return <ChangesBetween {...props} />;
  const stored = steps.filter((each) => each.isStored).map((each) => each.step);
  return (
    <p className={styles.note}>
      The files after this step are not stored{stored.length > 0 && `; those after these steps are: ${ranges(stored)}`}. Files are stored
      when the next step begins, for the newest steps.
    </p>
  );
}

/** The changes between two steps, file by file. */
function ChangesBetween({ view, steps, step, base, onBase }: StepChangesProps) {
  const station = useStation();
  const between = { at: step, ...(base !== null && { since: base }) };
  const { data, error, refetch } = useQuery({
    queryKey: ["session-diff", view.run, "steps", base, step],
    queryFn: ({ signal }) => station.sessions.diff(view.run, between, { signal }),
    retry: false,
  });
  return (
    <section className={styles.changes} aria-label="Changes">
      <div className={styles.between}>
        <label>
          Changes since{" "}
          <select value={base ?? 0} onChange={(event) => onBase(Number(event.target.value))}>
            {bases(steps, { step, base }).map((each) => (
              <option key={each} value={each}>
                {each === 0 ? "the beginning" : `step ${each}`}
              </option>
            ))}
          </select>
        </label>
        {data !== undefined && <span className={styles.quiet}>{plural(data.files.length, "file")}</span>}
      </div>
      {error !== null && <Problem error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Loading rows={4} />}
      {data !== undefined && data.files.length === 0 && (
        <Empty title="No changes in the workspace">
          From {base === null || base === 0 ? "the beginning" : pointWords({ step: base })} to {pointWords({ step })}, no file there
          changed.
        </Empty>
      )}
      {data !== undefined && <FilesBetween {...{ view, between }} diff={data} />}
    </section>
  );
}

interface Between {
  at: number;
  since?: number;
}

/** The changed files, and the changes in one of them. */
function FilesBetween({ view, between, diff }: { view: RunView; between: Between; diff: SessionDiff }) {
  const [params, change] = useFilterParams();
  const file = diff.files.find(({ path }) => path === params.get("file")) ?? diff.files[0];
  return (
    <>
      {file !== undefined && (
        <ul className={styles.files} aria-label="Changed files">
          {diff.files.map((each) => (
            <li key={each.path}>
              <FileButton file={each} isCurrent={each === file} onOpen={() => change({ file: each.path })} />
            </li>
          ))}
        </ul>
      )}
      {diff.leftOut.map(({ path, reason }) => (
        <p key={path} className={styles.note}>
          {visibleText(path)}: {visibleText(reason)}
        </p>
      ))}
      {file !== undefined && <FileBetween {...{ view, file, between }} />}
    </>
  );
}

function FileBetween({ view, file, between }: { view: RunView; file: ChangedFile; between: Between }) {
  const station = useStation();
  const { data, error, refetch } = useQuery({
    queryKey: ["session-file", view.run, "steps", file.path, between],
    queryFn: async ({ signal }) => {
      const request = { ...between, paths: [file.path], base: true, includeIgnored: true };
      const archive = await station.sessions.changes(view.run, request, { signal });
      return readSides(await new Response(archive).bytes(), file.path);
    },
    retry: false,
  });
  return <SidesView path={file.path} sides={data} error={error} onRetry={() => void refetch()} />;
}

/** The steps to compare with: the stored ones before, and the chosen one. The newest comes first. */
function bases(steps: readonly TimelineStep[], { step, base }: { step: number; base: number | null }): number[] {
  const stored = steps.filter((each) => each.isStored && each.step < step).map((each) => each.step);
  return [...new Set([0, ...stored, ...(base === null ? [] : [base])])].sort((one, other) => other - one);
}

/** Formats numbers in order, such as `1–4, 7`. */
export function ranges(numbers: readonly number[]): string {
  const parts: { first: number; last: number }[] = [];
  for (const number of numbers) {
    const part = parts.at(-1);
    if (part !== undefined && part.last === number - 1) part.last = number;
    else parts.push({ first: number, last: number });
  }
  return parts.map(({ first, last }) => (first === last ? `${first}` : `${first}–${last}`)).join(", ");
}
