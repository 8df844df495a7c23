import { useState } from "react";
import type { DamagedSandbox } from "../../../../src/contract/sandbox/sandbox-verbs.ts";
import { Button } from "../../parts/button.tsx";
import styles from "./damaged-sandboxes.module.css";
import { RemoveSandboxes } from "./remove-sandboxes.tsx";

/** Lists the sandboxes whose record cannot be read. They can only be removed. */
export function DamagedSandboxes({ damaged, onRemoved }: { damaged: readonly DamagedSandbox[]; onRemoved(): void }) {
  const [isConfirming, setConfirming] = useState(false);
  return (
    <div className={styles.damaged} role="alert">
      <div>
        <strong>{damaged.length === 1 ? "A sandbox record is unreadable" : `${damaged.length} sandbox records are unreadable`}</strong>
        <ul>
          {damaged.map(({ id, reason }) => (
            <li key={id}>
              <code>{id}</code> {reason}
            </li>
          ))}
        </ul>
      </div>
      <Button onClick={() => setConfirming(true)}>Remove…</Button>
      {isConfirming && (
        <RemoveSandboxes
          sandboxes={damaged}
          onClose={() => {
            setConfirming(false);
            onRemoved();
          }}
        />
      )}
    </div>
  );
}
