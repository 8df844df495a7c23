import Anser from "anser";
import { useMemo } from "react";
import { visibleLines } from "./visible-text.ts";

/** A piece of output with the colour that its program gave it. */
export interface AnsiSpan {
  text: string;
  /** `rgb` numbers such as `187, 0, 0`, or null for the page's own. */
  color: string | null;
  background: string | null;
  isBold: boolean;
  isDim: boolean;
  isItalic: boolean;
  isUnderlined: boolean;
}

/** Sequences that do anything but colour: cursor, titles, links, devices. A terminal would obey them; a page does not. */
const esc = "\\u001b";
const commands = new RegExp(
  [
    `${esc}\\][^\\u0007${esc}]*(?:\\u0007|${esc}\\\\)?`,
    `${esc}[PX^_][^${esc}]*(?:${esc}\\\\)?`,
    `${esc}\\[[0-9;?<=>!]*[ -/]*(?!m)[@-~]`,
    `${esc}[()][A-Z0-9]`,
    `${esc}[=>78cDEHMNOZ]`,
  ].join("|"),
  "g",
);

/** Only colours and weights are taken from output; everything else that is no text is dropped or made visible. */
export function ansiSpans(output: string): AnsiSpan[] {
  const text = output.replace(commands, "").replaceAll(/[^\n]*\r(?!\n)(?=[^\n])/g, "");
  return Anser.ansiToJson(text, { json: true, remove_empty: true }).map((entry) => ({
    text: visibleLines(entry.content),
    color: colorOf(entry.fg),
    background: colorOf(entry.bg),
    isBold: entry.decorations.includes("bold"),
    isDim: entry.decorations.includes("dim"),
    isItalic: entry.decorations.includes("italic"),
    isUnderlined: entry.decorations.includes("underline"),
  }));
}

/** Numbers only: it becomes part of a style. */
function colorOf(color: string | null): string | null {
  return color !== null && /^\d{1,3}, ?\d{1,3}, ?\d{1,3}$/.test(color) ? color : null;
}

/** A program's output, as text in its colours. */
export function Ansi({ text }: { text: string }) {
  const spans = useMemo(() => ansiSpans(text), [text]);
  return spans.map((span, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: a piece is its place.
    <span key={index} style={styleOf(span)}>
      {span.text}
    </span>
  ));
}

function styleOf({ color, background, isBold, isDim, isItalic, isUnderlined }: AnsiSpan) {
  return {
    // Mixed with the page's own text, so that it can be read on light and on dark.
    ...(color !== null && { color: `color-mix(in oklab, rgb(${color}), var(--text) 25%)` }),
    ...(background !== null && { background: `rgb(${background} / 0.25)`.replaceAll(",", "") }),
    ...(isBold && { fontWeight: 600 }),
    ...(isDim && { opacity: 0.75 }),
    ...(isItalic && { fontStyle: "italic" }),
    ...(isUnderlined && { textDecoration: "underline" }),
  };
}
