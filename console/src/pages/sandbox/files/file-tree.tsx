import { ChevronDown, ChevronRight, File, FilePlus, FolderClosed, FolderPlus, Link2, Upload } from "lucide-react";
import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import { Button } from "../../../parts/button.tsx";
import { Loading } from "../../../parts/loading.tsx";
import { Problem } from "../../../parts/problem.tsx";
import { UnsavedDot } from "../../../parts/unsaved-dot.tsx";
import { visibleText } from "../../../parts/visible-text.ts";
import { FileSearch } from "./file-search.tsx";
import styles from "./files.module.css";
import { NewEntry } from "./new-entry.tsx";
import { folderOf, foldersTo } from "./paths.ts";
import type { DroppedFile } from "./transfer.ts";
import { type TreeRow, treeRows } from "./tree-rows.ts";
import { useFolders } from "./use-folders.ts";

const INDENT_PX = 14;

interface FileTreeProps {
  sandbox: string;
  root: string;
  onRoot(root: string): void;
  path: string | null;
  isFolder: boolean;
  /** Whether the open file has changes that are not saved. */
  isDirty: boolean;
  onPath(path: string | null, kind?: "file" | "folder"): void;
  onUpload(files: readonly DroppedFile[]): void;
}

export function FileTree({ sandbox, root, onRoot, path, isFolder, isDirty, onPath, onUpload }: FileTreeProps) {
  const [open, setOpen] = useState<ReadonlySet<string>>(() => new Set(path === null ? [] : foldersTo(path, root)));
  const [typed, setTyped] = useState("");
  const [newEntryKind, setNewEntryKind] = useState<"file" | "folder" | null>(null);
  const chooser = useRef<HTMLInputElement>(null);
  useEffect(() => {
    // Unfolds the folders of a file that was chosen elsewhere, such as in the search.
    if (path !== null) setOpen((before) => new Set([...before, ...foldersTo(path, root)]));
  }, [path, root]);
  const folders = [root, ...[...open].filter((folder) => folder !== root)];
  const { listings, error, isLoading } = useFolders(sandbox, folders);
  const rows = treeRows(root, { open, listings });
  const into = path === null ? root : isFolder ? path : folderOf(path);
  const toggle = (row: TreeRow) => {
    const next = new Set(open);
    if (!next.delete(row.path)) next.add(row.path);
    setOpen(next);
    // Browsing the tree does not leave a file with unsaved changes.
    if (!isDirty) onPath(row.path, "folder");
  };
  return (
    <div className={styles.side}>
      <div className={styles.tools} role="toolbar" aria-label="Files">
        <select aria-label="Root folder" className={styles.root} value={root} onChange={(event) => onRoot(event.target.value)}>
          <option value="/workspace">/workspace</option>
          <option value="/">/</option>
        </select>
        <Button look="plain" label="New file" icon={<FilePlus />} onClick={() => setNewEntryKind("file")} />
        <Button look="plain" label="New folder" icon={<FolderPlus />} onClick={() => setNewEntryKind("folder")} />
        <Button look="plain" label="Upload" icon={<Upload />} onClick={() => chooser.current?.click()} />
        <input
          ref={chooser}
          type="file"
          multiple
          hidden
          aria-label="Files to upload"
          onChange={(event) => {
            onUpload([...(event.target.files ?? [])].map((file) => ({ path: file.name, file })));
            event.target.value = "";
          }}
        />
      </div>
      <FileSearch sandbox={sandbox} root={root} typed={typed} onTyped={setTyped} onPath={onPath} />
      {typed === "" && (
        <>
          {error !== null && <Problem error={error} />}
          {isLoading && <Loading rows={4} />}
          <Rows rows={rows} path={path} isDirty={isDirty} onToggle={toggle} onPath={onPath} />
          {!isLoading && error === null && rows.length === 0 && <p className={styles.none}>Empty. Drop files here, or create one.</p>}
          {[...listings.values()].some(({ truncated }) => truncated) && (
            <p className={styles.none}>Some folders have too many files to show all.</p>
          )}
        </>
      )}
      {newEntryKind !== null && (
        <NewEntry sandbox={sandbox} folder={into} kind={newEntryKind} onPath={onPath} onClose={() => setNewEntryKind(null)} />
      )}
    </div>
  );
}

function Rows({
  rows,
  path,
  isDirty,
  onToggle,
  onPath,
}: {
  rows: readonly TreeRow[];
  path: string | null;
  isDirty: boolean;
  onToggle(row: TreeRow): void;
  onPath(path: string): void;
}) {
  const list = useRef<HTMLDivElement>(null);
  const first = rows.some((row) => row.path === path) ? path : rows[0]?.path;
  const onKeyDown = (event: KeyboardEvent, row: TreeRow) => {
    const items = [...(list.current?.querySelectorAll<HTMLElement>("[role=treeitem]") ?? [])];
    const at = items.indexOf(event.currentTarget as HTMLElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
    if (to !== undefined) items[to]?.focus();
    else if (event.key === "ArrowRight" && row.kind === "directory" && !row.isOpen) onToggle(row);
    else if (event.key === "ArrowLeft" && row.isOpen) onToggle(row);
    else return;
    event.preventDefault();
  };
  return (
    <div ref={list} className={styles.tree} role="tree" aria-label="File tree">
      {rows.map((row) => (
        <button
          key={row.path}
          type="button"
          role="treeitem"
          aria-level={row.depth + 1}
          aria-selected={row.path === path}
          {...(row.kind === "directory" && { "aria-expanded": row.isOpen })}
          tabIndex={row.path === first ? 0 : -1}
          className={styles.item}
          style={{ paddingInlineStart: `${8 + row.depth * INDENT_PX}px` }}
          title={row.entry.linkTarget === null ? visibleText(row.name) : `${visibleText(row.name)} → ${visibleText(row.entry.linkTarget)}`}
          onClick={() => (row.kind === "directory" ? onToggle(row) : onPath(row.path))}
          onKeyDown={(event) => onKeyDown(event, row)}
        >
          <Icon row={row} />
          <span className={styles.label}>{visibleText(row.name)}</span>
          {isDirty && row.path === path && <UnsavedDot />}
        </button>
      ))}
    </div>
  );
}

function Icon({ row }: { row: TreeRow }) {
  if (row.kind !== "directory") {
    const Leaf = row.kind === "link" ? Link2 : File;
    return <Leaf aria-hidden="true" className={styles.leaf} />;
  }
  const Fold = row.isOpen ? ChevronDown : ChevronRight;
  return (
    <>
      <Fold aria-hidden="true" className={styles.fold} />
      <FolderClosed aria-hidden="true" />
    </>
  );
}
