import { type ReactNode, useLayoutEffect, useRef, useState } from "react";

interface ScrollBoxProps {
  /** The element, which preserves white space. */
  as?: "pre" | "code" | "div";
  /** The content, in a few words. */
  label: string;
  className?: string | undefined;
  children: ReactNode;
}

/** A box that scrolls if its content does not fit. Only then Tab stops at it. */
export function ScrollBox({ as: Element = "pre", label, className, children }: ScrollBoxProps) {
  const box = useRef<HTMLElement>(null);
  const [scrolls, setScrolls] = useState(false);
  // After every render, because the content may have grown.
  useLayoutEffect(() => {
    const { current: here } = box;
    if (here === null) return;
    const look = () => setScrolls(here.scrollHeight > here.clientHeight || here.scrollWidth > here.clientWidth);
    look();
    const watched = new ResizeObserver(look);
    watched.observe(here);
    return () => watched.disconnect();
  });
  return (
    <Element
      ref={(element: HTMLElement | null) => {
        box.current = element;
      }}
      className={className}
      {...(scrolls && { tabIndex: 0, role: "group", "aria-label": label })}
    >
      {children}
    </Element>
  );
}
