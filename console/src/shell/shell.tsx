import { Boxes, CircleHelp, Inbox, ListTree, type LucideIcon, Plus, Settings, Workflow } from "lucide-react";
import type { ReactNode } from "react";
import { Link, useLocation } from "wouter";
import { useInboxKeptUp, useThingsAsking } from "../data/inbox.ts";
import { useOpenRuns, useRunsKeptUp } from "../data/queries.ts";
import { useWorkKeptUp } from "../data/work-queries.ts";
import { AwayBanner } from "./away-banner.tsx";
import styles from "./shell.module.css";

/** `holds`: addresses of things that are listed on this page. */
const places: readonly { href: string; label: string; icon: LucideIcon; holds?: readonly string[] }[] = [
  { href: "/runs", label: "Runs", icon: ListTree },
  { href: "/work", label: "Work", icon: Workflow, holds: ["/workflows/", "/specs/", "/ships/", "/merges/"] },
  { href: "/sandboxes", label: "Sandboxes", icon: Boxes },
  { href: "/inbox", label: "Inbox", icon: Inbox },
  { href: "/settings", label: "Settings", icon: Settings },
];

const isAt = (location: string, places: readonly string[]) =>
  places.some((place) => location === place || location.startsWith(place.endsWith("/") ? place : `${place}/`));

/** The frame of all pages: navigation, and a banner while the station is unreachable. */
export function Shell({ children }: { children: ReactNode }) {
  useRunsKeptUp();
  useInboxKeptUp();
  useWorkKeptUp();
  const [location] = useLocation();
  const questions =
    useOpenRuns().data?.runs.reduce(
      (count, { asked: openQuestions, status }) => count + (status === "ended" ? 0 : openQuestions.length),
      0,
    ) ?? 0;
  const waiting = questions + (useThingsAsking().data?.length ?? 0);
  return (
    <div className={styles.shell}>
      <a href="#main" className={styles.skip}>
        Skip to content
      </a>
      <nav className={styles.places} aria-label="Main">
        <Link href="/runs" className={styles.brand ?? ""} aria-label="Caisson">
          <img src="/favicon.svg" alt="" width={20} height={20} />
          <span>Caisson</span>
        </Link>
        <Link href="/start" className={styles.start ?? ""}>
          <Plus aria-hidden="true" />
          <span>New run</span>
        </Link>
        {places.map(({ href, label, icon: Icon, holds = [] }) => (
          <Link key={href} href={href} className={styles.place ?? ""} aria-current={isAt(location, [href, ...holds]) ? "page" : undefined}>
            <Icon aria-hidden="true" />
            <span>{label}</span>
            {href === "/inbox" && waiting > 0 && (
              <span className={styles.count} role="img" aria-label={`${waiting} waiting`}>
                {waiting}
              </span>
            )}
          </Link>
        ))}
        <Link href="/settings/shortcuts" className={`${styles.place} ${styles.last}`}>
          <CircleHelp aria-hidden="true" />
          <span>Shortcuts</span>
        </Link>
      </nav>
      <div className={styles.content}>
        <AwayBanner />
        {children}
      </div>
    </div>
  );
}
