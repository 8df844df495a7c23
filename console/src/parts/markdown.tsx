import { lazy, Suspense } from "react";
import styles from "./markdown.module.css";
import { visibleLines } from "./visible-text.ts";

const Words = lazy(() => import("./words.tsx"));

/** Markdown from a model or a person. Shown as plain text until the renderer has loaded. */
export function Markdown({ text }: { text: string }) {
  return (
    <div className={styles.words}>
      <Suspense fallback={<p className={styles.plain}>{visibleLines(text)}</p>}>
        <Words text={text} />
      </Suspense>
    </div>
  );
}
