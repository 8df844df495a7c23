import { CaissonError } from "../../../src/contract/error/error.ts";
import { Button } from "./button.tsx";
import styles from "./problem.module.css";

/** An error with the station's message and hint. */
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

/** Capitalizes a message, unless it starts with a name such as an address, a path or an id. */
function sentence(text: string): string {
  return /^[a-z]+[ ,;:](?!\/)/.test(text) ? `${text.slice(0, 1).toUpperCase()}${text.slice(1)}` : text;
}
