import type { ReactNode } from "react";

/** A part of a page that scrolls by itself, and can be reached by keys where nothing in it can. */
export function Scroll({ label, className, children }: { label: string; className: string | undefined; children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard.
    <section className={className} aria-label={label} tabIndex={0}>
      {children}
    </section>
  );
}
