import type { ReactNode } from "react";
import { Scroll } from "./scroll.tsx";
import styles from "./two-columns.module.css";

/** A page about one thing: its content, and facts at its side (`Side`), or below if there is little room. */
export function TwoColumns({ label, side, children }: { label: string; side: ReactNode; children: ReactNode }) {
  return (
    <div className={styles.columns}>
      <Scroll className={styles.main} label={label}>
        {children}
      </Scroll>
      {side}
    </div>
  );
}

export function Side({ label, children }: { label: string; children: ReactNode }) {
  return (
    <aside className={styles.side} aria-label={label}>
      {children}
    </aside>
  );
}
