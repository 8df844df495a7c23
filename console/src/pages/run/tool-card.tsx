import { ChevronRight, FileDiff, FilePlus, FileX } from "lucide-react";
import { type ReactNode, useState } from "react";
import { Ansi } from "../../parts/ansi.tsx";
import { Badge, type Tone } from "../../parts/badge.tsx";
import { ScrollBox } from "../../parts/scroll-box.tsx";
import { duration } from "../../parts/time.tsx";
import { visibleLines, visibleText } from "../../parts/visible-text.ts";
import { type DiffLine, diffOfArguments, subjectOf } from "./argument-diff.ts";
import { ClippedText } from "./clipped-text.tsx";
import styles from "./items.module.css";
import type { FileChange, ToolItem } from "./timeline-item.ts";

const tones: Record<ToolItem["state"], Tone> = {
  asked: "idle",
  running: "busy",
  ok: "good",
  error: "bad",
  blocked: "warn",
  denied: "warn",
  interrupted: "idle",
  lost: "bad",
};

/** A tool call: its arguments, its output and its file changes. Folded until the user opens it. */
export function ToolCard({ item, lane }: { item: ToolItem; lane: ReactNode }) {
  const diff = diffOfArguments(item.name, item.arguments);
  const [isOpen, setOpen] = useState(diff !== null || lane !== null || item.state === "error");
  const isShown = isOpen || item.state === "running";
  return (
    <section className={styles.card}>
      <button type="button" className={styles.cardHead} aria-expanded={isShown} onClick={() => setOpen(!isShown)}>
        <ChevronRight className={styles.chevron} aria-hidden="true" />
        <strong>{visibleText(item.name)}</strong>
        <code className={styles.subject}>{visibleText(subjectOf(item.arguments).slice(0, 400))}</code>
        {item.durationMs !== null && <span className={styles.quiet}>{duration(item.durationMs)}</span>}
        <Badge tone={tones[item.state]}>{item.state}</Badge>
      </button>
      {item.files.length > 0 && (
        <ul className={styles.files}>
          {item.files.map((file) => (
            <ChangedFileLine key={file.path} file={file} />
          ))}
        </ul>
      )}
      {isShown && (
        <div className={styles.cardBody}>
          {diff !== null ? <SmallDiff lines={diff} /> : <Arguments given={item.arguments} />}
          {lane}
          {item.cutCharacters > 0 && <p className={styles.quiet}>{item.cutCharacters} earlier characters are in the log.</p>}
          {item.output !== "" && (
            <ClippedText text={item.output}>
              {(text) => (
                <ScrollBox className={styles.output} label="Output">
                  <Ansi text={text} />
                </ScrollBox>
              )}
            </ClippedText>
          )}
        </div>
      )}
    </section>
  );
}

function Arguments({ given: toolArguments }: { given: unknown }) {
  if (typeof toolArguments === "object" && toolArguments !== null && Object.keys(toolArguments).length === 0) return null;
  const command = (toolArguments as { command?: unknown } | null)?.command;
  const text = typeof command === "string" ? command : JSON.stringify(toolArguments, null, 2);
  return (
    <ClippedText text={text}>
      {(clippedText) => (
        <ScrollBox className={styles.arguments} label="Arguments">
          {visibleLines(clippedText)}
        </ScrollBox>
      )}
    </ClippedText>
  );
}

export function SmallDiff({ lines }: { lines: readonly DiffLine[] }) {
  return (
    <ScrollBox className={styles.diff} label="Changes">
      {lines.map((line, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a line is identified by its index.
        <span key={index} className={line.sign === "+" ? styles.added : line.sign === "-" ? styles.removed : undefined}>
          {line.sign} {visibleLines(line.text)}
          {"\n"}
        </span>
      ))}
    </ScrollBox>
  );
}

const icons = { added: FilePlus, modified: FileDiff, removed: FileX };

export function ChangedFileLine({ file }: { file: FileChange }) {
  const Icon = icons[file.kind];
  return (
    <li className={styles.file}>
      <Icon aria-label={file.kind} />
      <code>{visibleText(file.path)}</code>
      {file.linesAdded !== null && <span className={styles.plus}>+{file.linesAdded}</span>}
      {file.linesRemoved !== null && <span className={styles.minus}>−{file.linesRemoved}</span>}
    </li>
  );
}
