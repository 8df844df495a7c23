import { useSyncExternalStore } from "react";
import { wordsOf } from "./problem.tsx";
import styles from "./toasts.module.css";

interface Toast {
  id: number;
  text: string;
  hint?: string | undefined;
  isProblem: boolean;
}

const SHOWN_MS = 5_000;
const TOASTS_MAX = 4;
let toasts: readonly Toast[] = [];
let count = 0;
const watchers = new Set<() => void>();

export function say(text: string): void {
  show({ text, isProblem: false });
}

export function sayProblem(error: unknown): void {
  const { message, hint } = wordsOf(error);
  show({ text: message, hint, isProblem: true });
}

function show(toast: Omit<Toast, "id">): void {
  count += 1;
  const id = count;
  change([...toasts.slice(-(TOASTS_MAX - 1)), { ...toast, id }]);
  setTimeout(() => change(toasts.filter((each) => each.id !== id)), toast.isProblem ? SHOWN_MS * 2 : SHOWN_MS);
}

function change(next: readonly Toast[]): void {
  toasts = next;
  for (const watcher of watchers) watcher();
}

/** Short-lived messages about successes and failures. Screen readers announce them. */
export function Toasts() {
  const visibleToasts = useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher);
      return () => void watchers.delete(watcher);
    },
    () => toasts,
  );
  return (
    <div className={styles.toasts} role="status" aria-live="polite">
      {visibleToasts.map(({ id, text, hint, isProblem }) => (
        <div key={id} className={`${styles.toast} ${isProblem ? styles.problem : ""}`}>
          {text}
          {hint !== undefined && <div className={styles.hint}>{hint}</div>}
        </div>
      ))}
    </div>
  );
}
