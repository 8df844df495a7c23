import type { ReactNode } from "react";
import styles from "./badge.module.css";

export type Tone = "good" | "warn" | "bad" | "busy" | "idle";

/** A state in a word, with a dot whose shape shows it without color, too. */
export function Badge({ tone, children, title }: { tone: Tone; children: ReactNode; title?: string }) {
  return (
    <span className={`${styles.badge} ${styles[tone]}`} title={title}>
      <span className={styles.dot} aria-hidden="true" />
      {children}
    </span>
  );
}
