import styles from "./markdown.module.css";
import { Markdown } from "./markdown.tsx";
import { visibleLines } from "./visible-text.ts";

/** What a run asks. A call that somebody allows or denies is shown to the letter: Markdown would swallow some of a command's. */
export function QuestionText({ text, isLiteral }: { text: string; isLiteral: boolean }) {
  return isLiteral ? <p className={styles.plain}>{visibleLines(text)}</p> : <Markdown text={text} />;
}
