import Markdown, { type Components } from "react-markdown";
import { ScrollBox } from "./scroll-box.tsx";
import { visibleLines } from "./visible-text.ts";

/** Renders Markdown without raw HTML. Does not fetch images, and links only to web pages. */
export default function Words({ text }: { text: string }) {
  return (
    <Markdown components={components} skipHtml={false}>
      {visibleLines(text)}
    </Markdown>
  );
}

const components: Components = {
  pre: ({ children }) => <ScrollBox label="Code">{children}</ScrollBox>,
  img: ({ alt, src }) => <span>[image: {alt === undefined || alt === "" ? String(src ?? "") : alt}]</span>,
  a: ({ href, children }) =>
    href !== undefined && /^https?:\/\//i.test(href) ? (
      <a href={href} target="_blank" rel="noreferrer noopener" title={href}>
        {children}
      </a>
    ) : (
      <span>{children}</span>
    ),
};
