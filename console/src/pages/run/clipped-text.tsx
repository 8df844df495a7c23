import { type ReactNode, useState } from "react";
import styles from "./items.module.css";

const SHOWN_CHARACTERS = 4_000;
const MORE_CHARACTERS_MAX = 60_000;

/** Shows the beginning of a long text, and more of it on a click, up to what the page can handle. */
export function ClippedText({ text, children }: { text: string; children(text: string): ReactNode }) {
  const [isWhole, setWhole] = useState(false);
  const bound = isWhole ? MORE_CHARACTERS_MAX : SHOWN_CHARACTERS;
  const rest = text.length - bound;
  return (
    <>
      {children(rest > 0 ? text.slice(0, bound) : text)}
      {rest > 0 && !isWhole && (
        <button type="button" className={styles.more} onClick={() => setWhole(true)}>
          Show more ({rest} characters)
        </button>
      )}
      {rest > 0 && isWhole && <p className={styles.quiet}>{rest} more characters are in the log.</p>}
    </>
  );
}
