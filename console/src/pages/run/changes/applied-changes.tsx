import { useQuery } from "@tanstack/react-query";
import type { RunView } from "../../../../../src/contract/run/run-verbs.ts";
import type { AppliedChanges, AppliedFile } from "../../../../../src/contract/session/session-verbs.ts";
import { useStation } from "../../../data/station.tsx";
import { plural } from "../../../parts/amounts.ts";
import { Button } from "../../../parts/button.tsx";
import { Empty } from "../../../parts/empty.tsx";
import { useFilterParams } from "../../../parts/filter-params.ts";
import { ScrollBox } from "../../../parts/scroll-box.tsx";
import { Time } from "../../../parts/time.tsx";
import { visibleLines, visibleText } from "../../../parts/visible-text.ts";
import styles from "./changes.module.css";
import { FileButton } from "./file-button.tsx";
import { patchLines } from "./patch-lines.ts";

function useApplied(view: RunView, apply?: number) {
  const station = useStation();
  return useQuery({
    queryKey: ["session-applied", view.session, view.seq, apply],
    queryFn: ({ signal }) => station.sessions.applied(view.session, apply === undefined ? {} : { apply }, { signal }),
    retry: false,
    staleTime: 0,
    placeholderData: (before) => before,
  });
}

/** Says, next to the unapplied changes, that other changes were applied, and links to those. */
export function AppliedNote({ view }: { view: RunView }) {
  const [, change] = useFilterParams();
  const last = useApplied(view).data?.applies[0];
  if (last === undefined) return null;
  return (
    <p className={styles.leftOut}>
      <AppliedWords applied={last} />.{" "}
      <button type="button" className={styles.link} onClick={() => change({ apply: String(last.apply), file: null })}>
        Show applied changes
      </button>
    </p>
  );
}

/** Shows what was applied to a folder: the last time, or an earlier one. `left`: the number of files not applied. */
export function Applied({ view, left, onLookAgain }: { view: RunView; left: number; onLookAgain(): void }) {
  const [params, change] = useFilterParams();
  const requestedApply = Number(params.get("apply"));
  const { data } = useApplied(view, Number.isInteger(requestedApply) && requestedApply > 0 ? requestedApply : undefined);
  const again = <Button onClick={onLookAgain}>Refresh</Button>;
  const shownApply = data?.applies.find(({ apply }) => apply === data.diff?.apply) ?? data?.applies[0];
  if (data === undefined || shownApply === undefined) {
    return (
      <Empty title="No changes" action={again}>
        Files that the agent changes appear here for you to review before you apply them.
      </Empty>
    );
  }
  const files = data.diff?.files ?? [];
  const file = files.find(({ path }) => path === params.get("file")) ?? files[0];
  return (
    <>
      <div className={styles.appliedHead}>
        <p>
          <strong>
            <AppliedWords applied={shownApply} />
          </strong>{" "}
          to <code>{visibleText(shownApply.folder)}</code>. {left === 0 && "Nothing is left to apply."}
        </p>
        {data.applies.length > 1 && (
          <select
            aria-label="Apply to show"
            className={styles.applies}
            value={shownApply.apply}
            onChange={(event) => change({ apply: event.target.value, file: null })}
          >
            {data.applies.map(({ apply, at, count }) => (
              <option key={apply} value={apply}>
                {plural(count, "file")}, {new Date(at).toLocaleString()}
              </option>
            ))}
          </select>
        )}
        {left === 0 ? again : <Button onClick={() => change({ apply: null, file: null })}>{plural(left, "file")} not applied</Button>}
      </div>
      {file === undefined ? (
        <Empty title="No diff was stored for this apply" />
      ) : (
        <div className={styles.changes}>
          <div className={styles.list}>
            <ul aria-label="Applied files">
              {files.map((each) => (
                <li key={each.path}>
                  <FileButton file={each} isCurrent={each === file} onOpen={() => change({ file: each.path })} />
                </li>
              ))}
            </ul>
            {files.length < shownApply.count && <p className={styles.leftOut}>{shownApply.count - files.length} more were applied.</p>}
          </div>
          <AppliedPatch file={file} />
        </div>
      )}
    </>
  );
}

function AppliedWords({ applied: { count, at } }: { applied: AppliedChanges }) {
  return (
    <>
      {plural(count, "file")} {count === 1 ? "was" : "were"} applied <Time at={at} />
    </>
  );
}

function AppliedPatch({ file }: { file: AppliedFile }) {
  const lines = file.patch === null ? null : patchLines(file.patch);
  return (
    <section className={styles.shown} aria-label={visibleText(file.path)}>
      <header className={styles.fileHead}>
        <code>{visibleText(file.path)}</code>
      </header>
      {lines === null ? (
        <Empty title="This diff was too large to store" />
      ) : (
        <ScrollBox className={styles.patch} label={`Diff of ${visibleText(file.path)}`}>
          {lines.map(({ sign, text }, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a line is identified by its index.
            <span key={index} data-sign={sign}>
              {visibleLines(text)}
              {"\n"}
            </span>
          ))}
        </ScrollBox>
      )}
    </section>
  );
}
