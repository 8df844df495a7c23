import { Link } from "wouter";
import styles from "./tabs.module.css";

export interface Tab {
  href: string;
  label: string;
  count?: number | undefined;
}

/** Places within a page, each with an address of its own. */
export function Tabs({ tabs, current, label }: { tabs: readonly Tab[]; current: string; label: string }) {
  return (
    <nav className={styles.tabs} aria-label={label}>
      {tabs.map((tab) => (
        <Link key={tab.href} href={tab.href} className={styles.tab ?? ""} aria-current={tab.href === current ? "page" : undefined} replace>
          {tab.label}
          {tab.count !== undefined && tab.count > 0 && <span className={styles.count}>{tab.count}</span>}
        </Link>
      ))}
    </nav>
  );
}
