import { type ReactNode, useEffect } from "react";
import styles from "./page.module.css";

/** The frame of every page: its name, its actions, and its content, which scrolls separately. */
export function Page({ title, name, actions, children }: { title: string; name?: ReactNode; actions?: ReactNode; children: ReactNode }) {
  useTitle(title);
  return (
    <main className={styles.page} id="main">
      <header className={styles.head}>
        <h1>{name ?? title}</h1>
        <div className={styles.actions}>{actions}</div>
      </header>
      <div className={styles.body}>{children}</div>
    </main>
  );
}

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Caisson`;
  }, [title]);
}
