import { useState } from "react";
import { Button } from "./button.tsx";
import styles from "./value.module.css";
import { visibleLines } from "./visible-text.ts";

const SHOWN_CHARACTERS = 2_000;
const MORE_CHARACTERS_MAX = 100_000;

/** Data that somebody else wrote: text as text, everything else as JSON; the beginning of what is long. */
export function Value({ value, label }: { value: unknown; label: string }) {
  const [isWhole, setWhole] = useState(false);
  const text = typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "");
  const bound = isWhole ? MORE_CHARACTERS_MAX : SHOWN_CHARACTERS;
  const rest = text.length - bound;
  return (
    <div className={styles.value}>
      {/* biome-ignore lint/a11y/useSemanticElements: lines as they are need the element that keeps them. */}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled by keys. */}
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
