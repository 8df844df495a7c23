import { ArrowLeft, Download, Pencil, Trash2 } from "lucide-react";
import { type ReactNode, useState } from "react";
import { useStation } from "../../../data/station.tsx";
import { Button } from "../../../parts/button.tsx";
import { Confirm } from "../../../parts/confirm.tsx";
import { Copy } from "../../../parts/copy.tsx";
import { Empty } from "../../../parts/empty.tsx";
import { say, sayProblem } from "../../../parts/toasts.tsx";
import { dropUnsaved } from "../../../parts/unsaved.ts";
import { UnsavedDot } from "../../../parts/unsaved-dot.tsx";
import { useIsPhone } from "../../../parts/use-is-phone.ts";
import { visibleText } from "../../../parts/visible-text.ts";
import { FileView } from "./file-view.tsx";
import styles from "./files.module.css";
import { RenameEntry } from "./new-entry.tsx";
import { nameOf } from "./paths.ts";
import { download } from "./transfer.ts";
import { useFoldersAgain } from "./use-folders.ts";

interface FilePaneProps {
  sandbox: string;
  path: string | null;
  isFolder: boolean;
  onPath(path: string | null, kind?: "file" | "folder"): void;
  onDirty(isDirty: boolean): void;
}

/** The file or folder chosen in the tree, with the actions on it. */
export function FilePane({ sandbox, path, isFolder, onPath, onDirty }: FilePaneProps) {
  if (path === null) {
    return (
      <Empty title="No file selected">
        Choose a file in the tree to read or edit it. Drop files or folders anywhere here to upload them.
      </Empty>
    );
  }
  if (isFolder) {
    return (
      <div className={styles.pane}>
        <PaneHead {...{ sandbox, path, isFolder, onPath }} />
        <Empty title={visibleText(nameOf(path))}>New and dropped files go into this folder.</Empty>
      </div>
    );
  }
  return (
    <div className={styles.pane}>
      <FileView
        sandbox={sandbox}
        path={path}
        onDirty={onDirty}
        head={(extra, isDirty = false) => <PaneHead {...{ sandbox, path, isFolder, onPath, extra, isDirty }} />}
      />
    </div>
  );
}

function PaneHead({
  sandbox,
  path,
  isFolder,
  onPath,
  extra,
  isDirty = false,
}: Omit<FilePaneProps, "onDirty" | "path"> & { path: string; extra?: ReactNode; isDirty?: boolean }) {
  const station = useStation();
  const isPhone = useIsPhone();
  const lookAgain = useFoldersAgain(sandbox);
  const [dialog, setDialog] = useState<"rename" | "remove" | null>(null);
  const remove = async () => {
    await station.files.remove(sandbox, { path, recursive: isFolder });
    await lookAgain();
    say(`Removed ${nameOf(path)}.`);
    dropUnsaved();
    onPath(null);
  };
  return (
    <header className={styles.paneHead}>
      {isPhone && <Button look="plain" label="Back to the files" icon={<ArrowLeft />} onClick={() => onPath(null)} />}
      <code className={styles.path} title={visibleText(path)}>
        {visibleText(path)}
      </code>
      {isDirty && <UnsavedDot />}
      <Copy text={path} what="path" />
      {extra}
      <Button
        look="plain"
        label={isFolder ? "Download as archive" : "Download"}
        icon={<Download />}
        onClick={() => void download(station, { sandbox, path, isFolder }).catch(sayProblem)}
      />
      <Button
        look="plain"
        label={isDirty ? "Rename (save first)" : "Rename"}
        icon={<Pencil />}
        disabled={isDirty}
        onClick={() => setDialog("rename")}
      />
      <Button look="plain" label="Remove" icon={<Trash2 />} onClick={() => setDialog("remove")} />
      {dialog === "rename" && <RenameEntry {...{ sandbox, path, isFolder, onPath }} onClose={() => setDialog(null)} />}
      {dialog === "remove" && (
        <Confirm title={`Remove ${visibleText(nameOf(path))}?`} action="Remove" onConfirm={remove} onClose={() => setDialog(null)}>
          <p>{isFolder ? "Removes the folder and everything in it." : "This cannot be undone."}</p>
        </Confirm>
      )}
    </header>
  );
}
