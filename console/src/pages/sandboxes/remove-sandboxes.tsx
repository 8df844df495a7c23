import type { SandboxInfo } from "../../../../src/contract/sandbox/sandbox.ts";
import { useStation } from "../../data/station.tsx";
import { Confirm } from "../../parts/confirm.tsx";
import { say, sayProblem } from "../../parts/toasts.tsx";
import { visibleText } from "../../parts/visible-text.ts";
import styles from "./sandboxes.module.css";

const TOGETHER_MAX = 4;

/** Removes all of them. Shows the failures, which do not stop the others. */
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
      <p>Ends all processes and deletes all files inside. Snapshots and folders of this machine stay.</p>
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
