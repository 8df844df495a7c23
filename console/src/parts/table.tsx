import type { ReactNode } from "react";
import styles from "./table.module.css";
import { useIsPhone } from "./use-is-phone.ts";

export interface TableColumn {
  name: string;
  /** The place in a phone card: its title, beside the title, or (if absent) a fact below. */
  onPhone?: "title" | "beside";
}

export interface TableRow {
  key: string;
  /** One cell per column. Cards omit null and "". */
  cells: readonly ReactNode[];
  actions?: ReactNode;
}

interface TableProps {
  label: string;
  columns: readonly TableColumn[];
  rows: readonly TableRow[];
  /** Whether the table fits on a phone. */
  isNarrow?: boolean;
}

/** A short table, shown as cards on a phone. Use `List` for thousands of rows. */
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
        const fields = columns.map(({ name, onPhone }, index) => ({ name, onPhone, cell: cells[index] }));
        const facts = fields.filter(({ onPhone, cell }) => onPhone === undefined && cell !== null && cell !== "");
        return (
          <li key={key} className={styles.card}>
            <div className={styles.head}>
              <span className={styles.title}>{fields.find(({ onPhone }) => onPhone === "title")?.cell}</span>
              {fields.find(({ onPhone }) => onPhone === "beside")?.cell}
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
