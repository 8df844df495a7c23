import { useQuery, useQueryClient } from "@tanstack/react-query";
import { lazy, type ReactNode, Suspense, useCallback, useEffect, useRef, useState } from "react";
import type { Client } from "../../../../../src/client/connect.ts";
import { foundOrNull } from "../../../../../src/contract/error/found-or-null.ts";
import { useStation } from "../../../data/station.tsx";
import { bytes } from "../../../parts/amounts.ts";
import { Button } from "../../../parts/button.tsx";
import { Confirm } from "../../../parts/confirm.tsx";
import { Empty } from "../../../parts/empty.tsx";
import { Loading } from "../../../parts/loading.tsx";
import { Problem } from "../../../parts/problem.tsx";
import { say, sayProblem } from "../../../parts/toasts.tsx";
import { useUnsaved } from "../../../parts/unsaved.ts";
import { visibleText } from "../../../parts/visible-text.ts";
import { contentsOf, PICTURE_BYTES_MAX, pictureType, SHOWN_BYTES_MAX } from "./file-contents.ts";
import styles from "./files.module.css";
import { nameOf } from "./paths.ts";
import { Picture } from "./picture.tsx";

const Editor = lazy(() => import("./editor.tsx"));

interface FileViewProps {
  sandbox: string;
  path: string;
  onDirty(isDirty: boolean): void;
  head(extra?: ReactNode, isDirty?: boolean): ReactNode;
}

/** One file, to read and, if that is safe, to edit. Asks before it overwrites changes from inside the sandbox. */
export function FileView({ sandbox, path, onDirty, head }: FileViewProps) {
  const station = useStation();
  const queries = useQueryClient();
  const queryKey = ["file", sandbox, path];
  const [isDirty, setDirty] = useState(false);
  const [isConflict, setConflict] = useState(false);
  const text = useRef<(() => string) | null>(null);
  const { data, error, refetch } = useQuery({
    queryKey,
    queryFn: ({ signal }) => readFile(station, { sandbox, path, signal }),
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const changed = useCallback(
    (next: boolean) => {
      setDirty(next);
      onDirty(next);
    },
    [onDirty],
  );
  useEffect(() => () => onDirty(false), [onDirty]);
  useUnsaved(isDirty, { text: `Your changes to ${visibleText(nameOf(path))} are not saved.`, params: ["tab", "root", "path", "kind"] });
  const write = async () => {
    if (text.current === null) return;
    const saved = text.current();
    await station.files.write(sandbox, { path, how: "replace" }, new TextEncoder().encode(saved));
    const info = await station.files.info(sandbox, { path, follow: true });
    queries.setQueryData(queryKey, (before: FileRead | undefined) => before && { ...before, info });
    changed(text.current() !== saved);
    say("Saved.");
  };
  const save = async () => {
    if (!isDirty) return;
    const now = await foundOrNull(station.files.info(sandbox, { path, follow: true }));
    if (now !== null && data !== undefined && now.modifiedMs !== data.info.modifiedMs) return setConflict(true);
    await write();
  };
  if (error !== null) {
    return (
      <>
        {head()}
        <Problem error={error} onRetry={() => void refetch()} />
      </>
    );
  }
  if (data === undefined) return <Loading />;
  const { contents, info } = data;
  return (
    <>
      {head(
        <>
          <span className={styles.size}>{bytes(info.sizeBytes)}</span>
          {contents.kind === "text" && contents.canEdit && (
            <Button look={isDirty ? "main" : "normal"} disabled={!isDirty} onClick={() => void save().catch(sayProblem)}>
              Save
            </Button>
          )}
        </>,
        isDirty,
      )}
      {contents.kind === "binary" && <Empty title="Binary file">{bytes(info.sizeBytes)}, which cannot be shown here.</Empty>}
      {contents.kind === "picture" && <Picture name={nameOf(path)} type={contents.type} bytes={contents.bytes} />}
      {contents.kind === "text" && (
        <>
          {contents.note !== null && <p className={styles.note}>{contents.note}</p>}
          <Suspense fallback={<Loading />}>
            <Editor
              name={nameOf(path)}
              text={contents.text}
              canEdit={contents.canEdit}
              onDirty={changed}
              onSave={() => void save().catch(sayProblem)}
              read={text}
            />
          </Suspense>
        </>
      )}
      {isConflict && (
        <Confirm title="Changed inside the sandbox" action="Overwrite" onConfirm={write} onClose={() => setConflict(false)}>
          <p>A program in the sandbox changed this file after you opened it. Saving overwrites its changes.</p>
        </Confirm>
      )}
    </>
  );
}

type FileRead = Awaited<ReturnType<typeof readFile>>;

async function readFile(station: Client, { sandbox, path, signal }: { sandbox: string; path: string; signal: AbortSignal }) {
  const info = await station.files.info(sandbox, { path, follow: true }, { signal });
  const length = pictureType(path) === null ? SHOWN_BYTES_MAX : PICTURE_BYTES_MAX;
  const stream = await station.files.read(sandbox, { path, offset: 0, length: Math.max(1, Math.min(length, info.sizeBytes)) }, { signal });
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  return { info, contents: contentsOf(nameOf(path), bytes, info) };
}
