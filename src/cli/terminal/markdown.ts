import { bold, code, dim, italic, Line, type Piece } from "./line.ts";
import { plainText, wrapText } from "./plain-text.ts";
import { table } from "./table.ts";

/** The maximum number of table rows to align; the rest of a longer table stays unchanged. */
const TABLE_ROWS_MAX = 200;

/** Renders a model's Markdown line by line, as the lines arrive. */
export interface MarkdownView {
  /** Adds a line, without its line break. Returns nothing while a table is incomplete. */
  add(text: string): Line[];
  /** Ends the text. */
  end(): Line[];
}

/**
 * Renders Markdown for a terminal: headings, lists, quotes, tables, fenced and inline code, bold and italic. Anything
 * else stays unchanged. `columns` is infinite without a terminal; then nothing is rendered.
 */
export function createMarkdownView(columns: () => number): MarkdownView {
  let fence: string | null = null;
  let rows: string[] = [];
  let isBlankDue = false;
  let hasBegun = false;

  /** Returns the blank line that is due before the next block. */
  const gap = (): Line[] => {
    const due = isBlankDue ? [Line.of([""])] : [];
    isBlankDue = false;
    hasBegun = true;
    return due;
  };
  const endTable = (): Line[] => {
    if (rows.length === 0) return [];
    const lines = [...gap(), ...tableLines(rows, columns())];
    rows = [];
    return lines;
  };
  const block = (text: string): Line[] => {
    const mark = /^ {0,3}(```+|~~~+)/.exec(text)?.[1];
    if (fence !== null) {
      if (mark?.startsWith(fence) && text.trim() === mark) {
        fence = null;
        return [];
      }
      return wrapText(text, columns() - 2).map((row) => Line.of([dim("│ "), code(row)]));
    }
    if (mark !== undefined) {
      fence = mark;
      return [];
    }
    return paragraphLines(text, columns());
  };
  return {
    add(rawText) {
      const text = plainText(rawText);
      if (columns() === Number.POSITIVE_INFINITY) return text.trim() === "" ? [] : [Line.of([text])];
      if (fence === null && text.trimStart().startsWith("|") && rows.length < TABLE_ROWS_MAX) {
        rows.push(text.trim());
        return [];
      }
      const before = endTable();
      if (text.trim() === "" && fence === null) {
        isBlankDue = hasBegun;
        return before;
      }
      return [...before, ...gap(), ...block(text)];
    },
    end() {
      const lines = endTable();
      fence = null;
      isBlankDue = false;
      hasBegun = false;
      return lines;
    },
  };
}

function paragraphLines(text: string, columns: number): Line[] {
  const heading = /^ {0,3}#{1,6} +(\S.*)$/.exec(text)?.[1];
  if (heading !== undefined) return styledRows(heading, { columns, mark: bold });
  if (/^ {0,3}(?:-{3,}|\*{3,}|_{3,})$/.test(text)) return [dim("─".repeat(Math.min(columns, 40)))];
  const quote = /^ {0,3}> ?(.*)$/.exec(text)?.[1];
  if (quote !== undefined) return styledRows(quote, { columns: columns - 2 }).map((row) => Line.of([dim("│ "), row]));
  const item = /^( *)([-*+]|\d{1,9}[.)]) +(\S.*)$/.exec(text);
  if (item !== null) {
    const [, indent = "", bullet = "", rest = ""] = item;
    const head = `${indent}${/\d/.test(bullet) ? bullet : "•"} `;
    return styledRows(rest, { columns: columns - head.length }).map((row, at) => Line.of([at === 0 ? head : " ".repeat(head.length), row]));
  }
  return styledRows(text, { columns });
}

function tableLines(rows: readonly string[], columns: number): Line[] {
  const cells = rows.map(cellsOf);
  const isRule = (row: readonly string[]) => row.every((cell) => /^:?-+:?$/.test(cell));
  const isTable = rows.length > 1 && isRule(cells[1] ?? []);
  const tableRows = !isTable
    ? []
    : table(cells.filter((_, at) => at !== 1).map((row, at) => row.map((cell) => (at === 0 ? bold(styleText(cell)) : styleText(cell)))));
  const fits = isTable && tableRows.every(({ width }) => width <= columns);
  return fits ? tableRows : rows.flatMap((row) => styledRows(row, { columns }));
}

/** Splits a table row. An escaped bar is part of its cell. */
function cellsOf(row: string): string[] {
  const cells: string[] = [];
  let cell = "";
  for (let at = row.startsWith("|") ? 1 : 0; at < row.length; at++) {
    if (row[at] === "\\" && row[at + 1] === "|") {
      cell += "|";
      at += 1;
    } else if (row[at] === "|") {
      cells.push(cell.trim());
      cell = "";
    } else cell += row[at];
  }
  return cell.trim() === "" ? cells : [...cells, cell.trim()];
}

interface Span {
  text: string;
  mark: (piece: Piece) => Line;
}

const plain = (piece: Piece): Line => Line.of([piece]);
const styleText = (text: string): Line => Line.of(spansOf(text).map(({ text: each, mark }) => mark(each)));

/** Wraps text by its visible characters, and styles each row. */
function styledRows(text: string, { columns, mark = plain }: { columns: number; mark?: Span["mark"] }): Line[] {
  const spans = spansOf(text);
  const whole = spans.map(({ text: each }) => each).join("");
  const slice = createSpanSlicer(spans);
  let at = 0;
  return wrapText(whole, Math.max(1, columns)).map((row) => {
    const from = whole.indexOf(row, at);
    at = from + row.length;
    return mark(Line.of(slice(from, at)));
  });
}

/** Returns a function for consecutive slices. Each call resumes at the span where the last one ended. */
function createSpanSlicer(spans: readonly Span[]): (from: number, to: number) => Line[] {
  let index = 0;
  let begin = 0;
  return (from, to) => {
    const pieces: Line[] = [];
    for (let span = spans[index]; span !== undefined && begin < to; span = spans[index]) {
      const piece = span.text.slice(Math.max(0, from - begin), to - begin);
      if (piece !== "") pieces.push(span.mark(piece));
      if (begin + span.text.length > to) break;
      begin += span.text.length;
      index += 1;
    }
    return pieces;
  };
}

const MARKS = [
  { sign: "`", mark: code },
  { sign: "**", mark: bold },
  { sign: "*", mark: italic },
] as const;

/** Parses inline styles. An unclosed sign stays unchanged, and is searched for only once. */
function spansOf(text: string): Span[] {
  const spans: Span[] = [];
  const unclosed = new Set<string>();
  let begin = 0;
  for (let at = 0; at < text.length; ) {
    const found = MARKS.find(({ sign }) => !unclosed.has(sign) && text.startsWith(sign, at) && opens(text, at, sign));
    const end = found === undefined ? -1 : closing(text, at + found.sign.length, found.sign);
    if (found === undefined || end < 0) {
      if (found !== undefined) unclosed.add(found.sign);
      at += 1;
      continue;
    }
    if (at > begin) spans.push({ text: text.slice(begin, at), mark: plain });
    spans.push({ text: text.slice(at + found.sign.length, end), mark: found.mark });
    at = end + found.sign.length;
    begin = at;
  }
  return begin < text.length || spans.length === 0 ? [...spans, { text: text.slice(begin), mark: plain }] : spans;
}

/** Whether a sign opens a span; those in `2 * 3` and `a*b` do not. */
function opens(text: string, at: number, sign: string): boolean {
  if (sign === "`") return true;
  const next = text[at + sign.length];
  return next !== undefined && next !== " " && next !== "*" && !/\w/.test(text[at - 1] ?? " ");
}

function closing(text: string, from: number, sign: string): number {
  const end = text.indexOf(sign, from + 1);
  return end < 0 || sign === "`" || text[end - 1] !== " " ? end : -1;
}
