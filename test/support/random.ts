/** Random choices that are repeatable with a seed. */
export interface Random {
  /** Returns an integer, both ends included. */
  between(from: number, to: number): number;
  chance(probability: number): boolean;
  pick<Item>(items: readonly Item[]): Item;
  shuffled<Item>(items: readonly Item[]): Item[];
}

export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  // The Mulberry32 algorithm.
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const between = (from: number, to: number) => from + Math.floor(next() * (to - from + 1));
  return {
    between,
    chance: (probability) => next() < probability,
    pick(items) {
      const picked = items[between(0, items.length - 1)];
      if (picked === undefined) throw new Error("there is nothing to pick from");
      return picked;
    },
    shuffled(items) {
      const shuffled = [...items];
      for (let at = shuffled.length - 1; at > 0; at--) {
        const other = between(0, at);
        [shuffled[at], shuffled[other]] = [shuffled[other], shuffled[at]] as [(typeof items)[number], (typeof items)[number]];
      }
      return shuffled;
    },
  };
}
