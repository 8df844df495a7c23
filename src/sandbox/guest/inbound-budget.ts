/** Connections that may have the full window at once. */
const WIDE_MAX = 32;

/**
 * What connections from inside may make this process hold, all together: whoever is inside opens as many as there may
 * be, and the host may be slow to read them.
 */
export class InboundBudget {
  #open = 0;
  #wide = 0;

  opened(): void {
    this.#open++;
  }

  closed({ wasWide }: { wasWide: boolean }): void {
    this.#open--;
    if (wasWide) this.#wide--;
  }

  /** Whether one more, which has shown that it is read, may have the full window. */
  widen(): boolean {
    if (this.#wide >= WIDE_MAX) return false;
    this.#wide++;
    return true;
  }

  /**
   * Whether bytes may stay where they were read to. Each piece that waits holds the whole slab; with few connections
   * that does not matter.
   */
  get mayHoldSlabs(): boolean {
    return this.#open <= WIDE_MAX;
  }
}
