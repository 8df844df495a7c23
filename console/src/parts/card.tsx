import type { ReactNode } from "react";
import styles from "./card.module.css";

/** Something by itself, raised from the page: its name, badges beside it, and the rest. */
export function Card({ title, badges, children }: { title: string; badges?: ReactNode; children: ReactNode }) {
  return (
    <section className={styles.card}>
      <header>
        <h2>{title}</h2>
        {badges}
      </header>
      {children}
    </section>
  );
}
