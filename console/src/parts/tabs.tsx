import { useEffect, useRef } from "react";
import { Link } from "wouter";
import styles from "./tabs.module.css";
import { UnsavedDot } from "./unsaved-dot.tsx";

export interface Tab {
  href: string;
  label: string;
  count?: number | undefined;
  /** Whether it contains unsaved changes. */
  isUnsaved?: boolean;
}

/** The tabs of a page, each with its own address. */
export function Tabs({ tabs, current, label }: { tabs: readonly Tab[]; current: string; label: string }) {
  const nav = useRef<HTMLElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: scrolls the current tab into view if there is no room for all.
  useEffect(() => {
    // Not returned: some browsers return a promise, which is not a cleanup function.
    nav.current?.querySelector("[aria-current]")?.scrollIntoView({ inline: "nearest", block: "nearest" });
  }, [current]);
  return (
    <nav ref={nav} className={styles.tabs} aria-label={label}>
      {tabs.map((tab) => (
        <Link key={tab.href} href={tab.href} className={styles.tab ?? ""} aria-current={tab.href === current ? "page" : undefined} replace>
          {tab.label}
          {tab.isUnsaved && <UnsavedDot />}
          {tab.count !== undefined && tab.count > 0 && <span className={styles.count}>{tab.count}</span>}
        </Link>
      ))}
    </nav>
  );
}
