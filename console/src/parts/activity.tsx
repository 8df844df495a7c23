import { useActivity } from "../station/activity.ts";
import styles from "./activity.module.css";
import { Sparkline } from "./sparkline.tsx";

/** How busy a run or a sandbox was lately, in a list. */
export function Activity({ of }: { of: string }) {
  return <Sparkline counts={useActivity(of)} label="Activity of the last three minutes" className={styles.activity} />;
}
