/** The number of connections that may have the full window at the same time. */
const WIDE_MAX = 32;

/**
 * Limits the memory that all connections from inside take together: programs inside can open as many as the guest
 * accepts, and the host may be slow to read them.
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

  /** Grants one more connection the full window, after its data has been read once, unless too many have it. */
  widen(): boolean {
    if (this.#wide >= WIDE_MAX) return false;
    this.#wide++;
    return true;
  }

  /**
   * Whether bytes may stay in the slab that they were read into. Each waiting piece keeps its whole slab alive, which
   * does not matter with few connections.
   */
  get mayHoldSlabs(): boolean {
    return this.#open <= WIDE_MAX;
  }
}
