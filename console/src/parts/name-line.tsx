import type { ReactNode } from "react";
import { Link } from "wouter";
import styles from "./name-line.module.css";

/** The name of the thing that a page shows, with a link to its list, and more beside it. */
export function NameLine({ up, name, children }: { up: { href: string; label: string }; name: string; children?: ReactNode }) {
  return (
    <span className={styles.line}>
      <Link href={up.href} className={styles.up ?? ""}>
        {up.label}
      </Link>
      <span className={styles.slash} aria-hidden="true">
        /
      </span>
      <span className={styles.own}>{name}</span>
      {children}
    </span>
  );
}
