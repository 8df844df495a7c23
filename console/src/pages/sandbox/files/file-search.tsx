import { wordsOf } from "../../../parts/problem.tsx";
import { visibleText } from "../../../parts/visible-text.ts";
import styles from "./files.module.css";
import { findNames, joinPath } from "./paths.ts";
import { useAllPaths } from "./use-folders.ts";

const FOUND_MAX = 200;

/** Finds files by name, below the root folder of the tree. */
export function FileSearch({
  sandbox,
  root,
  typed,
  onTyped,
  onPath,
}: {
  sandbox: string;
  root: string;
  typed: string;
  onTyped(typed: string): void;
  onPath(path: string, kind?: "file" | "folder"): void;
}) {
  const all = useAllPaths(sandbox, root, { isWanted: typed !== "" });
  const kinds = new Map(all.data?.entries.map(({ name, kind }) => [joinPath(root, name), kind]));
  const found = typed === "" ? [] : findNames([...kinds.keys()], typed, { max: FOUND_MAX });
  const open = (path: string) => onPath(path, kinds.get(path) === "directory" ? "folder" : "file");
  return (
    <>
      <input
        type="search"
        className={styles.search}
        aria-label="Find files by name"
        placeholder="Find by name"
        value={typed}
        spellCheck={false}
        onChange={(event) => onTyped(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") onTyped("");
          if (event.key === "Enter" && found[0] !== undefined) open(found[0]);
        }}
      />
      {typed !== "" && (
        <ul className={styles.tree} aria-label="Search results">
          {found.map((path) => (
            <li key={path}>
              <button type="button" className={styles.item} title={visibleText(path)} onClick={() => open(path)}>
                <span className={styles.label}>{visibleText(path.slice(root.length).replace(/^\//, ""))}</span>
              </button>
            </li>
          ))}
          {all.error !== null && <li className={styles.none}>{wordsOf(all.error).message}</li>}
          {all.data !== undefined && found.length === 0 && <li className={styles.none}>No matching files.</li>}
          {all.data?.truncated === true && <li className={styles.none}>Not all files were searched.</li>}
        </ul>
      )}
    </>
  );
}
