import { useLiveState } from "../station/live.tsx";
import styles from "./away-banner.module.css";

/** Said while the station cannot be reached: what is shown may be old, and nothing is lost. */
export function AwayBanner() {
  const state = useLiveState();
  if (state !== "away") return null;
  return (
    <div className={styles.banner} role="status">
      The station cannot be reached. What you see may be old; it is brought up to date as soon as the station is back.
    </div>
  );
}
