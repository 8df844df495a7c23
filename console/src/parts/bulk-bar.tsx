import { X } from "lucide-react";
import type { ReactNode } from "react";
import styles from "./bulk-bar.module.css";
import { Button } from "./button.tsx";

/** The actions on all selected rows, over the end of the list. */
export function BulkBar({ count, onClear, children }: { count: number; onClear(): void; children: ReactNode }) {
  if (count === 0) return null;
  return (
    <div className={styles.bar} role="toolbar" aria-label="Selected rows">
      <span aria-live="polite">{count} selected</span>
      {children}
      <Button look="plain" label="Deselect all" icon={<X />} onClick={onClear} />
    </div>
  );
}
