import type { ReactNode } from "react";
import styles from "./card.module.css";

/** A separate block, raised from the page: a title, badges beside it, and content. */
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
