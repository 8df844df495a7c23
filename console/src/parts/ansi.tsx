import { useMemo } from "react";
import { type AnsiSpan, ansiSpans } from "./ansi-spans.ts";

/** A program's output, as text in its colors. */
export function Ansi({ text }: { text: string }) {
  const spans = useMemo(() => ansiSpans(text), [text]);
  return spans.map((span, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: a piece is identified by its index.
    <span key={index} style={styleOf(span)}>
      {span.text}
    </span>
  ));
}

function styleOf({ color, background, isBold, isDim, isItalic, isUnderlined }: AnsiSpan) {
  return {
    // Mixed with the page's text color, to be readable on light and dark.
    ...(color !== null && { color: `color-mix(in oklab, rgb(${color}), var(--text) 25%)` }),
    ...(background !== null && { background: `rgb(${background} / 0.25)`.replaceAll(",", "") }),
    ...(isBold && { fontWeight: 600 }),
    ...(isDim && { opacity: 0.75 }),
    ...(isItalic && { fontStyle: "italic" }),
    ...(isUnderlined && { textDecoration: "underline" }),
  };
}
