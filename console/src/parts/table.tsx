import type { ReactNode } from "react";
import styles from "./table.module.css";

/** A short table; rows are the caller's `tr`. What lives by the thousand is a `List`. */
export function Table({
  columns,
  hasActions = false,
  children,
}: {
  columns: readonly string[];
  hasActions?: boolean;
  children: ReactNode;
}) {
  return (
    <div className={styles.scroll}>
      <table className={styles.table}>
        <thead>
          <tr>
            {columns.map((name) => (
              <th key={name}>{name}</th>
            ))}
            {hasActions && (
              <th>
                <span className="visually-hidden">Actions</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
