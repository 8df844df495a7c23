import { useState } from "react";
import type { DamagedSandbox } from "../../../../src/contract/sandbox-verbs.ts";
import { Button } from "../../parts/button.tsx";
import styles from "./damaged-sandboxes.module.css";
import { RemoveSandboxes } from "./remove-sandboxes.tsx";

/** Those whose record cannot be read: all that can be done is to remove them. */
export function DamagedSandboxes({ damaged, onRemoved }: { damaged: readonly DamagedSandbox[]; onRemoved(): void }) {
  const [isAsked, setAsked] = useState(false);
  return (
    <div className={styles.damaged} role="alert">
      <div>
        <strong>
          {damaged.length === 1 ? "The record of a sandbox cannot be read" : `The records of ${damaged.length} sandboxes cannot be read`}
        </strong>
        <ul>
          {damaged.map(({ id, reason }) => (
            <li key={id}>
              <code>{id}</code> {reason}
            </li>
          ))}
        </ul>
      </div>
      <Button onClick={() => setAsked(true)}>Remove…</Button>
      {isAsked && (
        <RemoveSandboxes
          sandboxes={damaged}
          onClose={() => {
            setAsked(false);
            onRemoved();
          }}
        />
      )}
    </div>
  );
}
