import type { ChangedFile } from "../../../../../src/contract/session/session-verbs.ts";
import { visibleText } from "../../../parts/visible-text.ts";
import styles from "./changes.module.css";

interface FileButtonProps {
  file: Pick<ChangedFile, "path" | "from" | "kind" | "linesAdded" | "linesRemoved">;
  isCurrent: boolean;
  onOpen(): void;
}

/** A changed file in a list, with its line counts. */
export function FileButton({ file, isCurrent, onOpen }: FileButtonProps) {
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
