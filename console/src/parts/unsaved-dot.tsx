import styles from "./unsaved-dot.module.css";

/** A mark beside the name of something with unsaved changes. */
export function UnsavedDot() {
  return <span className={styles.dot} role="img" aria-label="not saved" title="Not saved" />;
}
