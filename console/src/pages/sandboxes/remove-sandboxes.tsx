import type { SandboxInfo } from "../../../../src/contract/sandbox.ts";
import { Confirm } from "../../parts/confirm.tsx";
import { say, sayProblem } from "../../parts/toasts.tsx";
import { visibleText } from "../../parts/visible-text.ts";
import { useStation } from "../../station/station.tsx";
import styles from "./sandboxes.module.css";

const TOGETHER_MAX = 4;

/** Removes them all, whichever of them fail; those are said. */
export function RemoveSandboxes({
  sandboxes,
  onClose,
  onRemoved,
}: {
  sandboxes: readonly Pick<SandboxInfo, "id" | "name">[];
  onClose(): void;
  onRemoved?: () => void;
}) {
  const station = useStation();
  const what = sandboxes.length === 1 ? (sandboxes[0]?.name ?? sandboxes[0]?.id ?? "") : `${sandboxes.length} sandboxes`;
  const remove = async () => {
    const waiting = [...sandboxes];
    let removed = 0;
    const worker = async () => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        try {
          await station.sandboxes.remove(next.id);
          removed += 1;
        } catch (error) {
          sayProblem(error);
        }
      }
    };
    await Promise.all(Array.from({ length: TOGETHER_MAX }, worker));
    if (removed > 0) say(removed === 1 ? "Removed." : `Removed ${removed} sandboxes.`);
    if (removed === sandboxes.length) onRemoved?.();
  };
  return (
    <Confirm title={`Remove ${visibleText(what)}?`} action="Remove" onConfirm={remove} onClose={onClose}>
      <p>Its processes are ended, and its files are lost, except what lies in snapshots or in folders of this machine.</p>
      {sandboxes.length > 1 && (
        <ul className={styles.names}>
          {sandboxes.map(({ id, name }) => (
            <li key={id}>
              {name !== undefined && <>{visibleText(name)} </>}
              <code>{id}</code>
            </li>
          ))}
        </ul>
      )}
    </Confirm>
  );
}
