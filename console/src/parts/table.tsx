import type { ReactNode } from "react";
import styles from "./table.module.css";
import { useIsPhone } from "./use-is-phone.ts";

export interface TableColumn {
  name: string;
  /** Where a row is a card: its title, what stands at the end of the title's line, or (if absent) a fact below it. */
  onPhone?: "title" | "beside";
}

export interface TableRow {
  key: string;
  /** One for each column; null and "" are left out of a card. */
  cells: readonly ReactNode[];
  actions?: ReactNode;
}

interface TableProps {
  label: string;
  columns: readonly TableColumn[];
  rows: readonly TableRow[];
  /** It has room on a phone, too. */
  isNarrow?: boolean;
}

/** A short table, of cards on a phone. What lives by the thousand is a `List`. */
export function Table(props: TableProps) {
  const isPhone = useIsPhone();
  return isPhone && !props.isNarrow ? <Cards {...props} /> : <Lines {...props} />;
}

function Lines({ label, columns, rows }: TableProps) {
  const hasActions = rows.some(({ actions }) => actions !== undefined);
  return (
    <table className={styles.table} aria-label={label}>
      <thead>
        <tr>
          {columns.map(({ name }) => (
            <th key={name}>{name}</th>
          ))}
          {hasActions && (
            <th>
              <span className="visually-hidden">Actions</span>
            </th>
          )}
        </tr>
      </thead>
      <tbody>
        {rows.map(({ key, cells, actions }) => (
          <tr key={key}>
            {columns.map(({ name }, index) => (
              <td key={name}>{cells[index]}</td>
            ))}
            {hasActions && <td className={styles.actions}>{actions}</td>}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Cards({ label, columns, rows }: TableProps) {
  return (
    <ul className={styles.cards} aria-label={label}>
      {rows.map(({ key, cells, actions }) => {
        const shown = columns.map(({ name, onPhone }, index) => ({ name, onPhone, cell: cells[index] }));
        const facts = shown.filter(({ onPhone, cell }) => onPhone === undefined && cell !== null && cell !== "");
        return (
          <li key={key} className={styles.card}>
            <div className={styles.head}>
              <span className={styles.title}>{shown.find(({ onPhone }) => onPhone === "title")?.cell}</span>
              {shown.find(({ onPhone }) => onPhone === "beside")?.cell}
            </div>
            {facts.length > 0 && (
              <dl className={styles.facts}>
                {facts.map(({ name, cell }) => (
                  <div key={name}>
                    <dt>{name}</dt>
                    <dd>{cell}</dd>
                  </div>
                ))}
              </dl>
            )}
            {actions !== undefined && <div className={styles.cardActions}>{actions}</div>}
          </li>
        );
      })}
    </ul>
  );
}
