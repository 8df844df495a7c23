import { useLiveState } from "../data/live.tsx";
import styles from "./away-banner.module.css";

/** Shown while the station is unreachable: the page may be out of date, but nothing is lost. */
export function AwayBanner() {
  const state = useLiveState();
  if (state !== "away") return null;
  return (
    <div className={styles.banner} role="status">
      The station cannot be reached. This page may be out of date; it updates when the station is back.
    </div>
  );
}
