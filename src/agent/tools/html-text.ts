/**
 * Returns the text of an HTML page, with headings, lists and links as in Markdown. Makes one pass without building a
 * tree, so that no page can make this slow, whatever it contains.
 */
export function htmlText(html: string): string {
  let out = "";
  let at = 0;
  const links: string[] = [];
  while (at < html.length) {
    const open = html.indexOf("<", at);
    const text = html.slice(at, open === -1 ? html.length : open);
    out += decodeEntities(text).replaceAll(/\s+/g, " ");
    if (open === -1) break;
    if (html.startsWith("<!--", open)) {
      at = after(html, "-->", open);
      continue;
    }
    const close = html.indexOf(">", open);
    if (close === -1) break;
    const tag = html.slice(open + 1, Math.min(close, open + 1 + TAG_CHARACTERS_MAX));
    const name = /^\/?([a-zA-Z][a-zA-Z0-9]*)/.exec(tag)?.[1]?.toLowerCase() ?? "";
    const ends = tag.startsWith("/");
    at = close + 1;
    if (!ends && skipped.has(name)) {
      at = after(html, `</${name}`, at, true);
      at = after(html, ">", at);
      continue;
    }
    if (name === "a") out += ends ? linkEnd(links.pop() ?? "") : linkStart(links, tag);
    else out += markFor(name, ends);
  }
  return out
    .split("\n")
    .map((line) => line.trim())
    .join("\n")
    .replaceAll(/\n{3,}/g, "\n\n")
    .trim();
}

const TAG_CHARACTERS_MAX = 4096;
const LINKS_DEEP_MAX = 16;
const skipped = new Set(["script", "style", "noscript", "template", "svg", "head", "iframe"]);
const blocks = new Set(
  "p div section article main header footer nav aside ul ol table tr blockquote form fieldset figure details summary dl dt dd pre hr title".split(
    " ",
  ),
);

function markFor(name: string, ends: boolean): string {
  if (name === "br") return "\n";
  if (name === "li") return ends ? "" : "\n- ";
  if (name === "td" || name === "th") return ends ? " | " : "";
  if (/^h[1-6]$/.test(name)) return ends ? "\n\n" : `\n\n${"#".repeat(Number(name[1]))} `;
  return blocks.has(name) ? "\n\n" : "";
}

function linkStart(links: string[], tag: string): string {
  const [, quoted, single, bare] = /\bhref\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']+))/i.exec(tag) ?? [];
  const target = decodeEntities(quoted ?? single ?? bare ?? "");
  const link = /^(https?:\/\/|\/)/i.test(target) ? target : "";
  if (links.length < LINKS_DEEP_MAX) links.push(link);
  return link === "" ? "" : "[";
}

function linkEnd(target: string): string {
  return target === "" ? "" : `](${target})`;
}

/** Returns the index after `what`, or the end of the text. */
function after(text: string, what: string, from: number, ignoreCase = false): number {
  if (!ignoreCase) {
    const found = text.indexOf(what, from);
    return found === -1 ? text.length : found + what.length;
  }
  const pattern = new RegExp(what.replaceAll(/[^a-z0-9]/g, "\\$&"), "gi");
  pattern.lastIndex = from;
  return pattern.test(text) ? pattern.lastIndex : text.length;
}

const named: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: " ",
  ndash: "–",
  mdash: "—",
  hellip: "…",
  copy: "©",
  reg: "®",
  laquo: "«",
  raquo: "»",
  lsquo: "‘",
  rsquo: "’",
  ldquo: "“",
  rdquo: "”",
  bull: "•",
  middot: "·",
  times: "×",
  rarr: "→",
  larr: "←",
};

function decodeEntities(text: string): string {
  return text.replaceAll(/&(#x[0-9a-f]{1,6}|#\d{1,7}|[a-z]{2,8});/gi, (whole, entity: string) => {
    if (!entity.startsWith("#")) return named[entity.toLowerCase()] ?? whole;
    const code = entity[1] === "x" || entity[1] === "X" ? Number.parseInt(entity.slice(2), 16) : Number(entity.slice(1));
    return code > 0 && code <= 0x10_ffff && !(code >= 0xd800 && code <= 0xdfff) ? String.fromCodePoint(code) : whole;
  });
}
