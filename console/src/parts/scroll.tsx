import type { ReactNode } from "react";

/** A part of a page that scrolls separately. The keyboard can reach it even if it contains nothing focusable. */
export function Scroll({ label, className, children }: { label: string; className: string | undefined; children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard.
    <section className={className} aria-label={label} tabIndex={0}>
      {children}
    </section>
  );
}
