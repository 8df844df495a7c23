import { useQuery } from "@tanstack/react-query";
import { Columns2, RefreshCw, Rows2 } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import type { RunView } from "../../../../../src/contract/run-verbs.ts";
import type { ChangedFile } from "../../../../../src/contract/session-verbs.ts";
import { Button } from "../../../parts/button.tsx";
import { Empty } from "../../../parts/empty.tsx";
import { useFilterParams } from "../../../parts/filter-params.ts";
import { Loading } from "../../../parts/loading.tsx";
import { Problem } from "../../../parts/problem.tsx";
import { useIsPhone } from "../../../parts/use-is-phone.ts";
import { visibleText } from "../../../parts/visible-text.ts";
import { useStation } from "../../../station/station.tsx";
import { ChangeActions } from "./change-actions.tsx";
import styles from "./changes.module.css";
import { CommentBox, Comments } from "./comments.tsx";
import { readSides } from "./read-changes.ts";
import type { ReviewComment } from "./review-comments.ts";

const DiffView = lazy(() => import("./diff-view.tsx"));

/** What the session's runs changed, file by file, and what becomes of it; with `at`, what they had changed after a step. */
export default function Changes({ view, version, at }: { view: RunView; version: number; at?: number | undefined }) {
  const station = useStation();
  const [params, change] = useFilterParams();
  const [comments, setComments] = useState<readonly ReviewComment[]>([]);
  const { data, error, refetch, isFetching } = useQuery({
    queryKey: ["session-diff", view.session, version, view.status, at],
    queryFn: ({ signal }) => station.sessions.diff(...as(view, at), { signal }),
    retry: false,
  });
  if (error !== null) return <Problem error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading />;
  const file = data.files.find(({ path }) => path === params.get("file")) ?? data.files[0];
  if (file === undefined) {
    return (
      <Empty title="Nothing has changed" action={<Button onClick={() => void refetch()}>Look again</Button>}>
        When the agent writes files they show up here, to be reviewed before anything of yours changes.
      </Empty>
    );
  }
  return (
    <div className={styles.changes}>
      <div className={styles.list}>
        <div className={styles.listHead}>
          {at === undefined && <ChangeActions view={view} files={data.files} onDone={() => void refetch()} />}
          <Button look="plain" label="Look again" icon={<RefreshCw />} disabled={isFetching} onClick={() => void refetch()} />
        </div>
        <ul aria-label="Changed files">
          {data.files.map((each) => (
            <li key={each.path}>
              <FileButton file={each} isCurrent={each === file} onOpen={() => change({ file: each.path })} />
            </li>
          ))}
        </ul>
        {data.leftOut.map(({ path, reason }) => (
          <p key={path} className={styles.leftOut}>
            {visibleText(path)}: {visibleText(reason)}
          </p>
        ))}
        {data.ignored > 0 && <p className={styles.leftOut}>{data.ignored} more that .gitignore names</p>}
        <Comments view={view} comments={comments} onChange={setComments} />
      </div>
      <FileDiff
        key={`${file.path} ${version}`}
        {...{ view, file, at }}
        isSideBySide={params.get("split") === "1"}
        onLayout={(isSideBySide) => change({ split: isSideBySide ? "1" : null })}
        onComment={(comment) => setComments([...comments, comment])}
      />
    </div>
  );
}

function FileButton({ file, isCurrent, onOpen }: { file: ChangedFile; isCurrent: boolean; onOpen(): void }) {
  return (
    <button type="button" className={styles.file} aria-current={isCurrent} onClick={onOpen}>
      <span className={styles.kind} data-kind={file.kind} title={file.kind}>
        {file.kind.slice(0, 1).toUpperCase()}
      </span>
      <span className={styles.path}>
        {file.from !== null && `${visibleText(file.from)} → `}
        {visibleText(file.path)}
      </span>
      <span className={styles.plus}>+{file.linesAdded}</span>
      <span className={styles.minus}>−{file.linesRemoved}</span>
    </button>
  );
}

/** A step is one of a run; without one, the session is meant. */
function as(view: RunView, at: number | undefined): [string, { at?: number }] {
  return at === undefined ? [view.session, {}] : [view.run, { at }];
}

interface FileDiffProps {
  view: RunView;
  at: number | undefined;
  file: ChangedFile;
  isSideBySide: boolean;
  onLayout(isSideBySide: boolean): void;
  onComment(comment: ReviewComment): void;
}

function FileDiff({ view, at, file, isSideBySide, onLayout, onComment }: FileDiffProps) {
  const station = useStation();
  const isPhone = useIsPhone();
  const [line, setLine] = useState<{ line: number; code: string } | null>(null);
  const { data, error, refetch } = useQuery({
    queryKey: ["session-file", view.session, file.path, file.linesAdded, file.linesRemoved, view.seq, at],
    queryFn: async ({ signal }) => {
      const [name, when] = as(view, at);
      const archive = await station.sessions.changes(name, { ...when, paths: [file.path], base: true, includeIgnored: true }, { signal });
      return readSides(await new Response(archive).bytes(), file.path);
    },
    retry: false,
    placeholderData: (before) => before,
  });
  return (
    <section className={styles.shown} aria-label={visibleText(file.path)}>
      <header className={styles.fileHead}>
        <code>{visibleText(file.path)}</code>
        {file.changedOutside && <span className={styles.warning}>You changed it since.</span>}
        {file.heldBack !== null && <span className={styles.warning}>{visibleText(file.heldBack)}</span>}
        {!isPhone && (
          <span className={styles.layouts}>
            <Button look="plain" label="Unified" icon={<Rows2 />} isOn={!isSideBySide} onClick={() => onLayout(false)} />
            <Button look="plain" label="Side by side" icon={<Columns2 />} isOn={isSideBySide} onClick={() => onLayout(true)} />
          </span>
        )}
      </header>
      {error !== null && <Problem error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Loading />}
      {data?.isOther && <Empty title="This file is no text, or too long to be shown here" />}
      {line !== null && (
        <CommentBox
          path={file.path}
          {...line}
          onClose={() => setLine(null)}
          onComment={(text) => {
            onComment({ path: file.path, ...line, text });
            setLine(null);
          }}
        />
      )}
      {data !== undefined && !data.isOther && (
        <Suspense fallback={<Loading />}>
          <DiffView
            path={file.path}
            before={data.before ?? ""}
            after={data.after ?? ""}
            isSideBySide={isSideBySide && !isPhone}
            onLine={(number, code) => setLine({ line: number, code })}
          />
        </Suspense>
      )}
      <p className={styles.tip}>
        Click a line's number to comment on it.{" "}
        <button type="button" className={styles.link} onClick={() => setLine({ line: 1, code: (data?.after ?? "").split("\n")[0] ?? "" })}>
          Comment on the file
        </button>
      </p>
    </section>
  );
}
