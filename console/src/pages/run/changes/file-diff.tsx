import { useQuery } from "@tanstack/react-query";
import { Columns2, Rows2 } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import type { RunView } from "../../../../../src/contract/run/run-verbs.ts";
import type { ChangedFile } from "../../../../../src/contract/session/session-verbs.ts";
import { useStation } from "../../../data/station.tsx";
import { Button } from "../../../parts/button.tsx";
import { Empty } from "../../../parts/empty.tsx";
import { Loading } from "../../../parts/loading.tsx";
import { Problem } from "../../../parts/problem.tsx";
import { useIsPhone } from "../../../parts/use-is-phone.ts";
import { visibleText } from "../../../parts/visible-text.ts";
import styles from "./changes.module.css";
import { CommentBox } from "./comments.tsx";
import { readSides } from "./read-changes.ts";
import type { DiffPlace, ReviewComment } from "./review-comments.ts";

const DiffView = lazy(() => import("./diff-view.tsx"));

/** Returns what to query: the run at a step, or the session without one. */
export function asNamed(view: RunView, at: number | undefined): [string, { at?: number }] {
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

/** Shows the changes in one file, with comments on its lines. */
export function FileDiff({ view, at, file, isSideBySide, onLayout, onComment }: FileDiffProps) {
  const station = useStation();
  const isPhone = useIsPhone();
  const [place, setPlace] = useState<DiffPlace | null>(null);
  const { data, error, refetch } = useQuery({
    queryKey: ["session-file", view.session, file.path, file.linesAdded, file.linesRemoved, view.seq, at],
    queryFn: async ({ signal }) => {
      const [name, when] = asNamed(view, at);
      const archive = await station.sessions.changes(name, { ...when, paths: [file.path], base: true, includeIgnored: true }, { signal });
      return readSides(await new Response(archive).bytes(), file.path);
    },
    retry: false,
    placeholderData: (before) => before,
  });
  const isText = data !== undefined && !data.isOther;
  const box = place !== null && (
    <CommentBox
      key={`${place.side} ${place.line}`}
      path={file.path}
      at={place}
      onClose={() => setPlace(null)}
      onComment={(text) => {
        onComment({ path: file.path, ...place, text });
        setPlace(null);
      }}
    />
  );
  return (
    <section className={styles.shown} aria-label={visibleText(file.path)}>
      <header className={styles.fileHead}>
        <code>{visibleText(file.path)}</code>
        {file.changedOutside && <span className={styles.warning}>You changed this file since.</span>}
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
      {data?.isOther && <Empty title="This file is not text, or is too long to show here" />}
      {!isText && box}
      {isText && (
        <Suspense fallback={<Loading />}>
          <DiffView
            path={file.path}
            before={data.before ?? ""}
            after={data.after ?? ""}
            isSideBySide={isSideBySide && !isPhone}
            commenting={{ onPlace: setPlace, at: place, box }}
          />
        </Suspense>
      )}
      <p className={styles.tip}>
        Click a line number or a removed line to comment on it.{" "}
        <button type="button" className={styles.link} onClick={() => setPlace({ side: "after", line: null, code: "" })}>
          Comment on the whole file
        </button>
      </p>
    </section>
  );
}
