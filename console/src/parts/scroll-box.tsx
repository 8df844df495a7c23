import { type ReactNode, useLayoutEffect, useRef, useState } from "react";

interface ScrollBoxProps {
  /** The element that keeps the text as it is meant. */
  as?: "pre" | "code" | "div";
  /** What it holds, in a few words. */
  label: string;
  className?: string | undefined;
  children: ReactNode;
}

/** Something that scrolls where there is no room for it. Only then is it a stop of the Tab key: elsewhere it would be one for nothing. */
export function ScrollBox({ as: Element = "pre", label, className, children }: ScrollBoxProps) {
  const box = useRef<HTMLElement>(null);
  const [scrolls, setScrolls] = useState(false);
  // With every drawing: what is in it may be more by then.
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
