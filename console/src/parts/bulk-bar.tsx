import { X } from "lucide-react";
import type { ReactNode } from "react";
import styles from "./bulk-bar.module.css";
import { Button } from "./button.tsx";

/** What can be done with all chosen rows, over the end of the list. */
export function BulkBar({ count, onClear, children }: { count: number; onClear(): void; children: ReactNode }) {
  if (count === 0) return null;
  return (
    <div className={styles.bar} role="toolbar" aria-label="Chosen rows">
      <span aria-live="polite">{count} chosen</span>
      {children}
      <Button look="plain" label="Choose none" icon={<X />} onClick={onClear} />
    </div>
  );
}
