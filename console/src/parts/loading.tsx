import styles from "./loading.module.css";

/** Grey rows in the place of what is on its way; shown a little late, so that what is quick does not flicker. */
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
