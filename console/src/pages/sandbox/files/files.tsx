import { type DragEvent, useState } from "react";
import { useStation } from "../../../data/station.tsx";
import { Empty } from "../../../parts/empty.tsx";
import { useFilterParams } from "../../../parts/filter-params.ts";
import { say, sayProblem } from "../../../parts/toasts.tsx";
import { useIsPhone } from "../../../parts/use-is-phone.ts";
import type { SandboxPart } from "../use-sandbox.ts";
import { FilePane } from "./file-pane.tsx";
import { FileTree } from "./file-tree.tsx";
import styles from "./files.module.css";
import { folderOf } from "./paths.ts";
import { type DroppedFile, droppedFiles, upload } from "./transfer.ts";
import { useFoldersAgain } from "./use-folders.ts";

/** The sandbox's files: a tree, and the open file. */
export default function Files({ sandbox }: SandboxPart) {
  const [params, change] = useFilterParams();
  const isPhone = useIsPhone();
  const [isDirty, setDirty] = useState(false);
  const [isOver, setOver] = useState(false);
  const send = useUpload(sandbox.id);
  const root = params.get("root") === "/" ? "/" : "/workspace";
  const path = params.get("path");
  const isFolder = params.get("kind") === "folder";
  // Unsaved text stays visible, to be copied, or saved when the sandbox runs again.
  if (sandbox.state !== "running" && !isDirty)
    return <Empty title={`The sandbox is ${sandbox.state}`}>You can see its files while it runs.</Empty>;
  const choose = (next: string | null, kind: "file" | "folder" = "file") =>
    change({ path: next, kind: kind === "folder" ? "folder" : null });
  const into = path === null ? root : isFolder ? path : folderOf(path);
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    void droppedFiles(event.dataTransfer.items)
      .then((files) => send(into, files))
      .catch(sayProblem);
  };
  return (
    <section
      className={`${styles.files} ${isOver ? styles.over : ""}`}
      aria-label="Files"
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={(event) => {
        if (event.currentTarget === event.target) setOver(false);
      }}
      onDrop={drop}
    >
      {!(isPhone && path !== null && !isFolder) && (
        <FileTree
          sandbox={sandbox.id}
          root={root}
          onRoot={(next) => change({ root: next === "/" ? "/" : null, path: null, kind: null })}
          path={path}
          isFolder={isFolder}
          isDirty={isDirty}
          onPath={choose}
          onUpload={(files) => void send(into, files).catch(sayProblem)}
        />
      )}
      {!(isPhone && (path === null || isFolder)) && (
        <FilePane key={path} sandbox={sandbox.id} path={path} isFolder={isFolder} onPath={choose} onDirty={setDirty} />
      )}
    </section>
  );
}

function useUpload(sandbox: string): (folder: string, files: readonly DroppedFile[]) => Promise<void> {
  const station = useStation();
  const lookAgain = useFoldersAgain(sandbox);
  return async (folder, files) => {
    if (files.length === 0) return;
    await upload(station, { sandbox, folder, files });
    await lookAgain();
    say(`Uploaded ${files.length === 1 ? "1 file" : `${files.length} files`} to ${folder}.`);
  };
}
