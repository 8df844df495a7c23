import { CaissonError } from "../../../src/contract/error.ts";
import { Button } from "./button.tsx";
import styles from "./problem.module.css";

/** What went wrong, in the station's words, with what to do about it. */
export function Problem({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const { message, hint } = wordsOf(error);
  return (
    <div className={styles.problem} role="alert">
      <div>
        <strong>{sentence(message)}</strong>
        {hint !== undefined && <p>{hint}</p>}
      </div>
      {onRetry !== undefined && <Button onClick={onRetry}>Try again</Button>}
    </div>
  );
}

export function wordsOf(error: unknown): { message: string; hint?: string | undefined } {
  if (error instanceof CaissonError) return { message: error.message, hint: error.hint };
  return { message: error instanceof Error ? error.message : String(error) };
}

/** With a capital, unless it begins with a name: an address, a path, an id. */
function sentence(text: string): string {
  return /^[a-z]+[ ,;:](?!\/)/.test(text) ? `${text.slice(0, 1).toUpperCase()}${text.slice(1)}` : text;
}
