import styles from "./unsaved-dot.module.css";

/** Beside the name of what was changed and not saved. */
export function UnsavedDot() {
  return <span className={styles.dot} role="img" aria-label="not saved" title="Not saved" />;
}
