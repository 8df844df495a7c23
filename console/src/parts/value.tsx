import { useState } from "react";
import { Button } from "./button.tsx";
import styles from "./value.module.css";
import { visibleLines } from "./visible-text.ts";

const SHOWN_CHARACTERS = 2_000;
const MORE_CHARACTERS_MAX = 100_000;

/**
 * Untrusted data: strings as text, everything else as JSON. Shows only the beginning of long data, unless it is alone
 * on its page.
 */
export function Value({ value, label, isAlone = false }: { value: unknown; label: string; isAlone?: boolean }) {
  const [isWhole, setWhole] = useState(isAlone);
  const text = typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "");
  const bound = isWhole ? MORE_CHARACTERS_MAX : SHOWN_CHARACTERS;
  const rest = text.length - bound;
  return (
    <div className={`${styles.value} ${isAlone ? styles.alone : ""}`}>
      {/* biome-ignore lint/a11y/useSemanticElements: only this element preserves white space. */}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard. */}
      <pre tabIndex={0} role="region" aria-label={label}>
        {visibleLines(text.slice(0, bound))}
      </pre>
      {rest > 0 && !isWhole && (
        <Button look="plain" onClick={() => setWhole(true)}>
          Show more ({rest} characters)
        </Button>
      )}
    </div>
  );
}
