import styles from "./loading.module.css";

/** Gray rows as a placeholder while something loads. Appears with a delay, so that short waits do not flicker. */
export function Loading({ rows = 6 }: { rows?: number }) {
  return (
    <div className={styles.loading} role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, row) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the rows are alike.
        <div key={row} className={styles.row} style={{ inlineSize: `${90 - ((row * 17) % 50)}%` }} />
      ))}
    </div>
  );
}
