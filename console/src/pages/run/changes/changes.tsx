import { useQuery } from "@tanstack/react-query";
import { RefreshCw } from "lucide-react";
import { useState } from "react";
import type { RunView } from "../../../../../src/contract/run/run-verbs.ts";
import { useStation } from "../../../data/station.tsx";
import { Button } from "../../../parts/button.tsx";
import { Empty } from "../../../parts/empty.tsx";
import { useFilterParams } from "../../../parts/filter-params.ts";
import { Loading } from "../../../parts/loading.tsx";
import { Problem } from "../../../parts/problem.tsx";
import { visibleText } from "../../../parts/visible-text.ts";
import { Applied, AppliedNote } from "./applied-changes.tsx";
import { ChangeActions } from "./change-actions.tsx";
import styles from "./changes.module.css";
import { Comments } from "./comments.tsx";
import { FileButton } from "./file-button.tsx";
import { asNamed, FileDiff } from "./file-diff.tsx";
import type { ReviewComment } from "./review-comments.ts";

/** The file changes of the session's runs, with the actions on them; with `at`, the changes up to that step. */
export default function Changes({ view, version, at }: { view: RunView; version: number; at?: number | undefined }) {
  const station = useStation();
  const [params, change] = useFilterParams();
  const [comments, setComments] = useState<readonly ReviewComment[]>([]);
  const { data, error, refetch, isFetching } = useQuery({
    queryKey: ["session-diff", view.session, version, view.status, at],
    queryFn: ({ signal }) => station.sessions.diff(...asNamed(view, at), { signal }),
    retry: false,
  });
  if (error !== null) return <Problem error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading />;
  const file = data.files.find(({ path }) => path === params.get("file")) ?? data.files[0];
  if (at === undefined && (file === undefined || params.has("apply")))
    return <Applied view={view} left={data.files.length} onLookAgain={() => void refetch()} />;
  if (file === undefined) {
    return (
      <Empty title="No changes" action={<Button onClick={() => void refetch()}>Refresh</Button>}>
        The agent had not changed any files at this point.
      </Empty>
    );
  }
  return (
    <div className={styles.changes}>
      <div className={styles.list}>
        <div className={styles.listHead}>
          {at === undefined && <ChangeActions view={view} files={data.files} onDone={() => void refetch()} />}
          <Button look="plain" label="Refresh" icon={<RefreshCw />} disabled={isFetching} onClick={() => void refetch()} />
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
        {data.ignored > 0 && <p className={styles.leftOut}>{data.ignored} more ignored by .gitignore</p>}
        {at === undefined && <AppliedNote view={view} />}
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
