import { useActivity } from "../data/activity.ts";
import styles from "./activity.module.css";
import { Sparkline } from "./sparkline.tsx";

/** A small chart of how busy a run or a sandbox was lately. */
export function Activity({ of }: { of: string }) {
  return <Sparkline counts={useActivity(of)} label="Activity in the last three minutes" className={styles.activity} />;
}
