/** Which rows of a list are chosen, and which one the keyboard is at. By id, so that rows may come and go. */
export interface Selection {
  readonly current: string | null;
  readonly chosen: ReadonlySet<string>;
  /** Where a range began. */
  readonly anchor: string | null;
}

export const nothingSelected: Selection = { current: null, chosen: new Set(), anchor: null };

export type SelectionStep =
  | { kind: "move"; by: number; extends?: boolean }
  | { kind: "toEnd"; end: "first" | "last" }
  | { kind: "toggle"; id?: string }
  | { kind: "range"; id: string }
  | { kind: "all" }
  | { kind: "none" };

export function step(selection: Selection, ids: readonly string[], taken: SelectionStep): Selection {
  const { current, chosen, anchor } = selection;
  switch (taken.kind) {
    case "move": {
      const at = current === null ? -1 : ids.indexOf(current);
      const next = ids[at === -1 ? (taken.by > 0 ? 0 : ids.length - 1) : clamp(at + taken.by, ids.length)] ?? null;
      if (!taken.extends || next === null) return { current: next, chosen, anchor: next };
      const from = anchor ?? current ?? next;
      return { current: next, chosen: new Set([...chosen, ...between(ids, from, next)]), anchor: from };
    }
    case "toEnd": {
      const next = (taken.end === "first" ? ids[0] : ids.at(-1)) ?? null;
      return { current: next, chosen, anchor: next };
    }
    case "toggle": {
      const id = taken.id ?? current;
      if (id === null) return selection;
      const next = new Set(chosen);
      if (!next.delete(id)) next.add(id);
      return { current: id, chosen: next, anchor: id };
    }
    case "range":
      return { current: taken.id, chosen: new Set([...chosen, ...between(ids, anchor ?? taken.id, taken.id)]), anchor: anchor ?? taken.id };
    case "all":
      return { current, chosen: new Set(ids), anchor };
    case "none":
      return { current, chosen: new Set(), anchor };
  }
}

/** Without the rows that have gone. The same one where none has. */
export function withoutGone(selection: Selection, ids: readonly string[]): Selection {
  const { current, chosen, anchor } = selection;
  if (current === null && anchor === null && chosen.size === 0) return selection;
  const there = new Set(ids);
  const isGone = (id: string | null) => id !== null && !there.has(id);
  if (!isGone(current) && !isGone(anchor) && [...chosen].every((id) => there.has(id))) return selection;
  return {
    current: isGone(current) ? null : current,
    chosen: new Set([...chosen].filter((id) => there.has(id))),
    anchor: isGone(anchor) ? null : anchor,
  };
}

function clamp(index: number, length: number): number {
  return Math.max(0, Math.min(length - 1, index));
}

function between(ids: readonly string[], from: string, to: string): string[] {
  const ends = [ids.indexOf(from), ids.indexOf(to)].sort((left, right) => left - right) as [number, number];
  return ids.slice(Math.max(0, ends[0]), ends[1] + 1);
}
